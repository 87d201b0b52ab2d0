// Model directory or spec in, bundle out: every room of the compiler in order. What a room refuses comes back as an error
// whose last line is the first cause. Code for the targets is made on threads of its own while weights are packed.
#include "compiler/Compile.h"
#include "compiler/SelfTest.h"
#include "compiler/artifact/BundleWriter.h"
#include "compiler/artifact/CheckpointSource.h"
#include "compiler/artifact/ImageFile.h"
#include "compiler/artifact/Manifest.h"
#include "compiler/artifact/PackEntries.h"
#include "compiler/artifact/PackWriter.h"
#include "compiler/artifact/PlanBytes.h"
#include "compiler/graph/Import.h"
#include "compiler/passes/EmitKernels.h"
#include "compiler/passes/Pipeline.h"
#include "compiler/spec/InputFile.h"
#include "compiler/spec/Text.h"
#include "compiler/target/Target.h"
#include "dialect/BattenDialect.h"
#include "dialect/PlanDialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"

#include <chrono>
#include <cstring>
#include <future>

namespace batten {

std::vector<std::string> knownTargets() { return knownTargetNames(); }

CompiledBlob::CompiledBlob(std::string path, std::vector<uint8_t> bytes)
    : filePath(std::move(path)), storage(bytes.size() + BATTEN_ALIGNMENT), byteCount(bytes.size()) {
  shift = -reinterpret_cast<uintptr_t>(storage.data()) % BATTEN_ALIGNMENT;
  std::memcpy(storage.data() + shift, bytes.data(), bytes.size());
}

namespace {

/// Collects diagnostics of a context, so that a failed pass becomes one llvm::Error.
class Diagnostics {
public:
  explicit Diagnostics(mlir::MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            add(diagnostic);
          return mlir::success();
        }) {}

  /// What was reported since the last call, one a line.
  llvm::Error take(const llvm::Twine &otherwise) {
    std::string text = lines.empty() ? otherwise.str() : llvm::join(lines, "\n");
    lines.clear();
    return makeError(text);
  }

private:
  void add(mlir::Diagnostic &diagnostic) {
    std::string line;
    if (auto at = diagnostic.getLocation()->findInstanceOf<mlir::FileLineColLoc>()) // inside of an op's name
      line = at.getFilename().str() + ":" + std::to_string(at.getLine()) + ":" + std::to_string(at.getColumn()) + ": ";
    line += diagnostic.str();
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      line += " (" + note.str() + ")";
    lines.push_back(line);
  }

  std::vector<std::string> lines;
  mlir::ScopedDiagnosticHandler handler;
};

/// One compile.
class Compilation {
public:
  explicit Compilation(const CompileRequest &request) : request(request), context(registry(), kNoThreads) {
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false); // errors are for users: a line each, not the op with all that is in it
    diagnostics.emplace(context);
  }

  /// Everything but the bundle's files: module with plans, kernel keys, targets.
  llvm::Error prepare();
  /// All files but the manifest.
  llvm::Error writeFiles(BundleSink &sink);
  llvm::Error writeManifest(BundleSink &sink);

  Manifest manifest;
  CompileSummary summary;

  void begin(const std::string &stage, const std::string &detail = "") {
    end();
    summary.stages.push_back({stage, 0});
    started = std::chrono::steady_clock::now();
    tell(detail);
  }
  void tell(const std::string &detail, uint64_t done = 0, uint64_t total = 0) {
    if (request.progress)
      request.progress({summary.stages.back().name, detail, done, total});
  }
  void end() {
    if (!summary.stages.empty() && summary.stages.back().seconds == 0)
      summary.stages.back().seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  }

private:
  static constexpr auto kNoThreads = mlir::MLIRContext::Threading::DISABLED;
  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry;
    registry.insert<BattenDialect, plan::PlanDialect>();
    return registry;
  }

  llvm::Error load();
  llvm::Error loadSpec();
  llvm::Error applyBuckets();
  llvm::Error chooseTargets();
  llvm::Error runPasses();
  llvm::Error describeLanes();
  llvm::Error writePacks(BundleSink &sink);
  llvm::Error writeTarget(BundleSink &sink, uint32_t target, const KernelImage &image);
  llvm::Expected<uint32_t> keep(llvm::Expected<WrittenFile> file, batten_file_kind kind);

  const CompileRequest &request;
  mlir::MLIRContext context;
  std::optional<Diagnostics> diagnostics;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Checkpoint> checkpoint;
  Spec spec;
  std::vector<Target> targets;
  uint32_t commonPack = 0, panelsPack = 0;
  std::chrono::steady_clock::time_point started;
};

llvm::Error Compilation::loadSpec() {
  llvm::Expected<Spec> read = readSpec(request.input);
  if (!read)
    return read.takeError();
  spec = std::move(*read);
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> graph = readGraph(context, spec.graph);
  if (!graph)
    return graph.takeError();
  module = std::move(*graph);
  llvm::Expected<std::unique_ptr<Checkpoint>> opened = openCheckpointFor(*module, spec.checkpoint);
  if (!opened)
    return opened.takeError();
  checkpoint = std::move(*opened);
  summary.notes.insert(summary.notes.end(), checkpoint->notes().begin(), checkpoint->notes().end());
  return llvm::Error::success();
}

llvm::Error Compilation::load() {
  if (!llvm::sys::fs::is_directory(request.input)) {
    if (llvm::Error error = loadSpec())
      return error;
  } else {
    llvm::Expected<ImportedModel> model = importGraph(context, request.input);
    if (!model)
      return model.takeError();
    spec = specFor(*model, "", request.input);
    module = std::move(model->module);
    checkpoint = std::move(model->checkpoint);
    summary.notes = model->notes;
  }
  if (llvm::Error error = applyBuckets())
    return error;
  for (const LaneSpec &lane : spec.lanes)
    summary.lanes.push_back(lane.name);
  if (llvm::Error error = addStages(*module, spec.stages, spec.lanes))
    return error;
  addStored(*module, *checkpoint);
  return llvm::Error::success();
}

llvm::Error Compilation::applyBuckets() {
  std::optional<std::vector<StageSpec>> table;
  if (!request.bucketsFile.empty()) {
    llvm::Expected<std::vector<StageSpec>> read = readBucketTable(request.bucketsFile);
    if (!read)
      return read.takeError();
    table = std::move(*read);
  }
  return assignStages(spec, std::move(table), request.bucketsFile, request.stages, summary.notes);
}

llvm::Error Compilation::chooseTargets() {
  std::vector<TargetSpec> wanted;
  for (const std::string &name : request.targets)
    wanted.push_back({name, "f32", "f32", "--target"});
  if (wanted.empty())
    wanted = spec.targets;
  if (wanted.empty())
    for (const std::string &name : knownTargets())
      wanted.push_back({name, "f32", "f32", ""});
  for (TargetSpec &target : wanted) {
    if (!request.weights.empty())
      target.weights = request.weights;
    if (!request.math.empty())
      target.math = request.math;
    for (const std::string *choice : {&target.weights, &target.math})
      if (*choice != "f32")
        return makeError("target " + quoted(target.cpu) + ": " + quoted(*choice) +
                         " is not supported by this version, only f32");
    if (llvm::any_of(targets, [&](const Target &other) { return other.name == target.cpu; }))
      return makeError("target " + quoted(target.cpu) + " is named twice");
    llvm::Expected<Target> found = lookupTarget(target.cpu);
    if (!found)
      return makeError((target.place.empty() ? "" : target.place + ": ") + llvm::toString(found.takeError()));
    targets.push_back(*found);
    summary.targets.push_back(found->name);
  }
  return llvm::Error::success();
}

llvm::Error Compilation::runPasses() {
  mlir::PassManager manager(&context);
  manager.enableVerifier(true);
  buildGraphPipeline(manager);
  buildPlanPipeline(manager);
  if (mlir::failed(manager.run(*module)))
    return diagnostics->take("the passes failed");
  if (auto unused = (*module)->getAttrOfType<mlir::ArrayAttr>("batten.unused"))
    for (auto name : unused.getAsRange<mlir::StringAttr>())
      summary.unusedTensors.push_back(name.str());
  return llvm::Error::success();
}

llvm::Error Compilation::prepare() {
  begin("read model", request.input);
  if (llvm::Error error = load())
    return error;
  if (llvm::Error error = chooseTargets())
    return error;
  begin("lower", std::to_string(spec.lanes.size()) + " lanes");
  if (llvm::Error error = runPasses())
    return error;
  return describeLanes();
}

/// Stages, lanes, outputs and limits of the manifest, from the programs.
llvm::Error Compilation::describeLanes() {
  manifest.producerVersion = BATTEN_VERSION_STRING;
  manifest.llvmVersion = LLVM_VERSION_STRING;
  manifest.stages = spec.stages;
  for (const LaneSpec &lane : spec.lanes) {
    auto program = module->lookupSymbol<plan::ProgramOp>(lane.name);
    assert(program && "addStages has checked the graphs");
    if (llvm::Error error = checkLimits(lane, program.getIdCount(), program.getTypeCount(), program.getSeqTypeCount(),
                                        program.getMaxSeqTokens()))
      return error;
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
    manifest.lanes.push_back(std::move(entry));
  }
  manifest.notes = readFacts(*module);
  for (const std::string &name : summary.unusedTensors)
    manifest.notes.emplace_back("unused tensor", name);
  return llvm::Error::success();
}

llvm::Expected<uint32_t> Compilation::keep(llvm::Expected<WrittenFile> file, batten_file_kind kind) {
  if (!file)
    return file.takeError();
  summary.files.push_back({file->path, file->bytes});
  summary.bytes += file->bytes;
  manifest.files.push_back({std::move(*file), kind});
  return manifest.files.size() - 1;
}

llvm::Error Compilation::writePacks(BundleSink &sink) {
  std::vector<layout::PackEntry> entries[2];
  layout::splitByPack(packEntries(*module), entries[BATTEN_PACK_COMMON], entries[BATTEN_PACK_PANELS]);
  CheckpointSource source(*checkpoint);
  for (batten_pack_index pack : {BATTEN_PACK_COMMON, BATTEN_PACK_PANELS}) {
    layout::PackLayout placed;
    std::string error;
    if (!layout::layoutPack(entries[pack], placed, error))
      return makeError(error);
    setPackOffsets(*module, entries[pack], placed);
    std::string name = (pack == BATTEN_PACK_COMMON ? kCommonPackPath : kPanelsPackPath).str();
    llvm::Expected<uint32_t> index = keep(writePack(sink, pack, entries[pack], placed, source,
                                                    [&](uint64_t done, uint64_t total) { tell(name, done, total); }),
                                          BATTEN_FILE_PACK);
    if (!index)
      return index.takeError();
    (pack == BATTEN_PACK_COMMON ? commonPack : panelsPack) = *index;
  }
  setPackDigests(*module, digestText(manifest.files[commonPack].file.digest),
                 digestText(manifest.files[panelsPack].file.digest));
  return llvm::Error::success();
}

llvm::Error Compilation::writeTarget(BundleSink &sink, uint32_t index, const KernelImage &image) {
  const Target &target = targets[index];
  setKernelEntries(*module, target, image);
  llvm::Expected<uint32_t> file =
      keep(writeImage(sink, target.name, image.bytes, image.codeOffset, image.codeBytes), BATTEN_FILE_IMAGE);
  if (!file)
    return file.takeError();
  manifest.targets.push_back({target.name, target.arch, BATTEN_ELEM_F32, BATTEN_ELEM_F32, *file, commonPack, panelsPack,
                              target.features, image.codeOffset, image.codeBytes});
  for (uint32_t lane = 0; lane < spec.lanes.size(); ++lane) {
    const std::vector<Bucket> &buckets = spec.stages[manifest.lanes[lane].stage].buckets;
    auto program = module->lookupSymbol<plan::ProgramOp>(spec.lanes[lane].name);
    uint32_t bucket = 0;
    for (auto layout : program.getOps<plan::LayoutOp>()) {
      mlir::FailureOr<std::vector<uint8_t>> bytes = writePlanBytes(layout);
      if (mlir::failed(bytes))
        return diagnostics->take("a plan has no bytes");
      file = keep(writeBundleFile(sink, planPath(target.name, spec.lanes[lane].name, buckets[bucket]), *bytes),
                  BATTEN_FILE_PLAN);
      if (!file)
        return file.takeError();
      manifest.plans.push_back({lane, bucket++, index, *file});
    }
  }
  return llvm::Error::success();
}

llvm::Error Compilation::writeFiles(BundleSink &sink) {
  begin("emit kernels and pack weights");
  mlir::FailureOr<llvm::SmallVector<KernelKey>> keys = planKernelKeys(*module);
  if (mlir::failed(keys))
    return diagnostics->take("a kernel key is broken");
  using Made = std::future<std::shared_ptr<llvm::Expected<KernelImage>>>;
  std::vector<Made> images;
  auto policy = request.threads == 1 ? std::launch::deferred : std::launch::async;
  for (const Target &target : targets)
    images.push_back(std::async(policy, [&target, &keys] {
      return std::make_shared<llvm::Expected<KernelImage>>(makeKernelImage(*keys, target));
    }));
  llvm::Error failed = writePacks(sink);
  for (uint32_t i = 0; i < targets.size(); ++i) {
    std::shared_ptr<llvm::Expected<KernelImage>> image = images[i].get();
    if (!*image)
      failed = llvm::joinErrors(makeError("no code for " + targets[i].name + ": " + llvm::toString(image->takeError())),
                                std::move(failed));
    else if (!failed)
      failed = writeTarget(sink, i, **image);
  }
  return failed;
}

llvm::Error Compilation::writeManifest(BundleSink &sink) {
  llvm::Expected<std::vector<uint8_t>> bytes = manifestBytes(manifest);
  if (!bytes)
    return bytes.takeError();
  llvm::Expected<WrittenFile> file = writeBundleFile(sink, kManifestPath, *bytes);
  if (!file)
    return file.takeError();
  summary.manifestDigest = digestText(file->digest);
  llvm::erase_if(summary.files, [](const CompileSummary::File &other) { return other.path == kManifestPath; });
  summary.files.push_back({file->path, file->bytes});
  summary.bytes = 0;
  for (const CompileSummary::File &other : summary.files)
    summary.bytes += other.bytes;
  return llvm::Error::success();
}

} // namespace

llvm::Expected<CompileSummary> compile(const CompileRequest &request) {
  Compilation compilation(request);
  if (llvm::Error error = compilation.prepare())
    return std::move(error);
  llvm::Expected<std::unique_ptr<BundleWriter>> writer = BundleWriter::begin(request.output);
  if (!writer)
    return writer.takeError();
  if (llvm::Error error = compilation.writeFiles(**writer))
    return std::move(error);
  if (llvm::Error error = compilation.writeManifest(**writer))
    return std::move(error);
  if (request.selfTest) {
    compilation.begin("self-test");
    if (llvm::Error error = addSelfTests((*writer)->stagingPath(), compilation.manifest, compilation.summary.notes))
      return std::move(error);
    if (llvm::Error error = compilation.writeManifest(**writer))
      return std::move(error);
  }
  compilation.begin("replace the output", request.output);
  if (llvm::Error error = (*writer)->commit())
    return std::move(error);
  compilation.end();
  return std::move(compilation.summary);
}

llvm::Expected<std::vector<CompiledBlob>> compileToMemory(const CompileRequest &request, CompileSummary *summary) {
  Compilation compilation(request);
  if (llvm::Error error = compilation.prepare())
    return std::move(error);
  MemoryBundle files, manifest;
  if (llvm::Error error = compilation.writeFiles(files))
    return std::move(error);
  std::vector<CompiledBlob> blobs;
  auto take = [&](MemoryBundle &bundle) {
    for (std::unique_ptr<MemoryBundle::Blob> &blob : bundle.take())
      blobs.emplace_back(std::move(blob->path), std::move(blob->bytes));
  };
  take(files);
  if (llvm::Error error = compilation.writeManifest(manifest))
    return std::move(error);
  take(manifest);
  if (request.selfTest) {
    compilation.begin("self-test");
    if (llvm::Error error = addSelfTests(blobs, compilation.manifest, compilation.summary.notes))
      return std::move(error);
    blobs.pop_back();
    if (llvm::Error error = compilation.writeManifest(manifest))
      return std::move(error);
    take(manifest);
  }
  compilation.end();
  if (summary)
    *summary = std::move(compilation.summary);
  return std::move(blobs);
}

} // namespace batten
