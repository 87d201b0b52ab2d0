// See the header. What a room refuses comes back as an error whose last line is the first cause.
#include "compiler/Lowering.h"
#include "compiler/artifact/CheckpointSource.h"
#include "compiler/artifact/PackEntries.h"
#include "compiler/artifact/PlanBytes.h"
#include "compiler/graph/Import.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Text.h"
#include "dialect/BattenDialect.h"

#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"

namespace batten {

static mlir::DialectRegistry dialects() {
  mlir::DialectRegistry registry;
  registry.insert<BattenDialect, plan::PlanDialect>();
  return registry;
}

LoweringContext::LoweringContext()
    : context(dialects(), mlir::MLIRContext::Threading::DISABLED),
      handler(&context, [this](mlir::Diagnostic &reported) {
        if (reported.getSeverity() == mlir::DiagnosticSeverity::Error)
          add(reported);
        return mlir::success();
      }) {
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false); // errors are for users: a line each, not the op with all that is in it
}

void LoweringContext::add(mlir::Diagnostic &diagnostic) {
  std::string line;
  if (auto at = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>()) // inside of an op's name
    line = at.getFilename().str() + ":" + std::to_string(at.getLine()) + ":" + std::to_string(at.getColumn()) + ": ";
  line += diagnostic.str();
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    line += " (" + note.str() + ")";
  lines.push_back(line);
}

llvm::Error LoweringContext::takeError(const llvm::Twine &otherwise) {
  std::string text = lines.empty() ? otherwise.str() : llvm::join(lines, "\n");
  lines.clear();
  return makeError(text);
}

llvm::Error LoweringContext::run(mlir::ModuleOp module, llvm::function_ref<void(mlir::OpPassManager &)> build) {
  mlir::PassManager manager(&context);
  manager.enableVerifier(true);
  build(manager);
  return mlir::failed(manager.run(module)) ? takeError("the passes failed") : llvm::Error::success();
}

static llvm::Expected<LoadedModel> loadSpec(LoweringContext &context, const std::string &input) {
  llvm::Expected<Spec> spec = readSpec(input);
  if (!spec)
    return spec.takeError();
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> graph = readGraph(context.get(), spec->graph);
  if (!graph)
    return graph.takeError();
  llvm::Expected<std::unique_ptr<Checkpoint>> checkpoint = openCheckpointFor(**graph, spec->checkpoint);
  if (!checkpoint)
    return checkpoint.takeError();
  std::vector<std::string> notes = (*checkpoint)->notes();
  return LoadedModel{std::move(*graph), std::move(*checkpoint), std::move(*spec), std::move(notes)};
}

static llvm::Expected<LoadedModel> loadDirectory(LoweringContext &context, const std::string &input) {
  llvm::Expected<ImportedModel> model = importGraph(context.get(), input);
  if (!model)
    return model.takeError();
  Spec spec = specFor(*model, "", input);
  return LoadedModel{std::move(model->module), std::move(model->checkpoint), std::move(spec), std::move(model->notes)};
}

llvm::Expected<LoadedModel> loadModel(LoweringContext &context, const CompileRequest &request) {
  bool isDirectory = llvm::sys::fs::is_directory(request.input);
  llvm::Expected<LoadedModel> model =
      isDirectory ? loadDirectory(context, request.input) : loadSpec(context, request.input);
  if (!model)
    return model;
  std::optional<std::vector<StageSpec>> table;
  if (!request.bucketsFile.empty()) {
    llvm::Expected<std::vector<StageSpec>> read = readBucketTable(request.bucketsFile);
    if (!read)
      return read.takeError();
    table = std::move(*read);
  }
  if (llvm::Error error =
          assignStages(model->spec, std::move(table), request.bucketsFile, request.stages, model->notes))
    return std::move(error);
  auto written = [&](std::string TargetSpec::*key) {
    return model->spec.targets.empty() ? std::string() : model->spec.targets.front().*key;
  };
  llvm::Expected<Precision> precision =
      choosePrecision(request.weights.empty() ? written(&TargetSpec::weights) : request.weights,
                      request.math.empty() ? written(&TargetSpec::math) : request.math);
  if (!precision)
    return precision.takeError();
  model->spec.precision = *precision;
  if (llvm::Error error = addStages(*model->module, model->spec.stages, model->spec.lanes))
    return std::move(error);
  return model;
}

Manifest beginManifest(mlir::ModuleOp module) {
  Manifest manifest;
  manifest.producerVersion = BATTEN_VERSION_STRING;
  manifest.llvmVersion = LLVM_VERSION_STRING;
  manifest.notes = readFacts(module);
  return manifest;
}

llvm::Expected<std::vector<ManifestLane>> describeLanes(mlir::ModuleOp module, const Spec &spec) {
  std::vector<ManifestLane> lanes;
  for (const LaneSpec &lane : spec.lanes) {
    auto program = module.lookupSymbol<plan::ProgramOp>(lane.name);
    assert(program && "addStages has checked the graphs");
    if (llvm::Error error = checkLimits(lane, program.getIdCount(), program.getTypeCount(), program.getSeqTypeCount(),
                                        program.getMaxSeqTokens()))
      return std::move(error);
    ManifestLane entry;
    entry.name = lane.name;
    entry.stage = llvm::find_if(spec.stages, [&](const StageSpec &stage) { return stage.name == lane.stage; }) -
                  spec.stages.begin();
    for (auto output : program.getOps<plan::OutputOp>()) {
      auto type = llvm::cast<plan::BufType>(output.getBuffer().getType());
      entry.outputs.push_back({output.getName().str(), static_cast<batten_row_kind>(type.getRowKind()),
                               static_cast<uint32_t>(type.getWidth())});
    }
    entry.inputs = (program.getTypeCount() ? BATTEN_INPUT_TOKEN_TYPES : 0) |
                   (program.getReadsMarkers() ? BATTEN_INPUT_MARKERS : 0) |
                   (program.getSeqTypeCount() ? BATTEN_INPUT_SEQ_TYPES : 0);
    entry.idCount = program.getIdCount();
    entry.typeCount = program.getTypeCount();
    entry.seqTypeCount = program.getSeqTypeCount();
    entry.maxSeqTokens = program.getMaxSeqTokens();
    lanes.push_back(std::move(entry));
  }
  return lanes;
}

llvm::Expected<PlacedPacks> placePacks(mlir::ModuleOp module) {
  PlacedPacks packs;
  layout::splitByPack(packEntries(module), packs[BATTEN_PACK_COMMON].entries, packs[BATTEN_PACK_PANELS].entries);
  for (PlacedPack &pack : packs) {
    std::string error;
    if (!layout::layoutPack(pack.entries, pack.placed, error))
      return makeError(error);
    setPackOffsets(module, pack.entries, pack.placed);
  }
  return packs;
}

llvm::Expected<std::array<WrittenFile, 2>>
writePacks(BundleSink &sink, const PlacedPacks &packs, const Checkpoint &checkpoint,
           llvm::function_ref<void(llvm::StringRef path, uint64_t done, uint64_t total)> progress) {
  std::array<WrittenFile, 2> files;
  CheckpointSource source(checkpoint);
  for (batten_pack_index pack : {BATTEN_PACK_COMMON, BATTEN_PACK_PANELS}) {
    llvm::StringRef path = pack == BATTEN_PACK_COMMON ? kCommonPackPath : kPanelsPackPath;
    auto tell = [&](uint64_t done, uint64_t total) { progress(path, done, total); };
    llvm::Expected<WrittenFile> file = writePack(sink, pack, packs[pack].entries, packs[pack].placed, source, tell);
    if (!file)
      return file.takeError();
    files[pack] = std::move(*file);
  }
  return files;
}

std::vector<CompiledBlob> takeBlobs(MemoryBundle &bundle) {
  std::vector<CompiledBlob> blobs;
  for (std::unique_ptr<MemoryBundle::Blob> &blob : bundle.take())
    blobs.emplace_back(std::move(blob->path), std::move(blob->bytes));
  return blobs;
}

batten_elem elemNamed(llvm::StringRef name) {
  return name == "f16"    ? BATTEN_ELEM_F16
         : name == "bf16" ? BATTEN_ELEM_BF16
         : name == "i8"   ? BATTEN_ELEM_I8
                          : BATTEN_ELEM_F32;
}

ManifestTarget manifestTarget(const Target &target, const Precision &precision, const KernelImage &image,
                              uint32_t imageFile) {
  return {target.name,      target.arch,        elemNamed(precision.weights), elemNamed(precision.math),
          imageFile,        BATTEN_PACK_COMMON, BATTEN_PACK_PANELS,           target.features,
          image.codeOffset, image.codeBytes};
}

llvm::Expected<WrittenFile> writePlan(LoweringContext &context, BundleSink &sink, plan::LayoutOp layout) {
  mlir::FailureOr<std::vector<uint8_t>> bytes = writePlanBytes(layout);
  if (mlir::failed(bytes))
    return context.takeError("a plan has no bytes");
  auto program = layout->getParentOfType<plan::ProgramOp>();
  llvm::ArrayRef<int64_t> counts = layout.getBucket();
  Bucket bucket{static_cast<uint32_t>(counts[0]), static_cast<uint32_t>(counts[1]), static_cast<uint32_t>(counts[2])};
  return writeBundleFile(sink, planPath(*program.getTarget(), program.getSymName(), bucket), *bytes);
}

} // namespace batten
