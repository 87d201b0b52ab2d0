// Model directory or spec in, bundle out: every room of the compiler in order. What a room refuses comes back as an error
// whose last line is the first cause. Code for the targets is made on threads of its own while weights are packed.
#include "compiler/Compile.h"
#include "compiler/Lowering.h"
#include "compiler/SelfTest.h"
#include "compiler/artifact/BundleWriter.h"
#include "compiler/artifact/ImageFile.h"
#include "compiler/artifact/PackEntries.h"
#include "compiler/graph/Import.h"
#include "compiler/passes/EmitKernels.h"
#include "compiler/passes/Pipeline.h"
#include "compiler/spec/Text.h"
#include "compiler/target/Target.h"

#include "mlir/Pass/PassManager.h"

#include "llvm/ADT/STLExtras.h"

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

/// One compile.
class Compilation {
public:
  explicit Compilation(const CompileRequest &request) : request(request) {}

  /// Everything but the bundle's files: module with plans, kernel keys, targets.
  llvm::Error prepare();
  /// All files but the manifest.
  llvm::Error writeFiles(BundleSink &sink);
  llvm::Error writeManifest(BundleSink &sink);
  /// The gate, where there is one; what it measures becomes notes of the manifest.
  llvm::Error measure(const std::string &directory);

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
  llvm::Error chooseTargets();
  llvm::Error describe();
  llvm::Error writeBothPacks(BundleSink &sink);
  llvm::Error writeTarget(BundleSink &sink, uint32_t target, const KernelImage &image);
  uint32_t keep(WrittenFile file, batten_file_kind kind);

  const CompileRequest &request;
  LoweringContext context;
  LoadedModel model;
  std::vector<Target> targets;
  std::chrono::steady_clock::time_point started;
};

llvm::Error Compilation::chooseTargets() {
  batten_elem math = elemNamed(model.spec.precision.math);
  std::vector<TargetSpec> wanted;
  for (const std::string &name : request.targets)
    wanted.push_back({name, "", "", "--target"});
  if (wanted.empty())
    wanted = model.spec.targets;
  if (wanted.empty())
    for (const std::string &name : defaultTargetNames(math))
      wanted.push_back({name, "", "", ""});
  for (TargetSpec &target : wanted) {
    if (llvm::any_of(targets, [&](const Target &other) { return other.name == target.cpu; }))
      return makeError("target " + quoted(target.cpu) + " is named twice");
    llvm::Expected<Target> found = lookupTarget(target.cpu);
    if (!found)
      return makeError((target.place.empty() ? "" : target.place + ": ") + llvm::toString(found.takeError()));
    if (llvm::Error error = checkMath(*found, math))
      return makeError((target.place.empty() ? "" : target.place + ": ") + llvm::toString(std::move(error)));
    targets.push_back(*found);
    summary.targets.push_back(found->name);
  }
  return llvm::Error::success();
}

llvm::Error Compilation::prepare() {
  begin("read model", request.input);
  llvm::Expected<LoadedModel> loaded = loadModel(context, request);
  if (!loaded)
    return loaded.takeError();
  model = std::move(*loaded);
  summary.notes = model.notes;
  for (const LaneSpec &lane : model.spec.lanes)
    summary.lanes.push_back(lane.name);
  if (llvm::Error error = chooseTargets())
    return error;
  begin("lower", std::to_string(model.spec.lanes.size()) + " lanes");
  addStored(*model.module, *model.checkpoint);
  const Precision &precision = model.spec.precision;
  if (llvm::Error error = context.run(*model.module, [&](mlir::OpPassManager &manager) {
        buildGraphPipeline(manager, {precision.weights, precision.math});
        buildPlanPipeline(manager);
      }))
    return error;
  return describe();
}

/// Fills in what the manifest says of the programs.
llvm::Error Compilation::describe() {
  manifest = beginManifest(*model.module);
  manifest.stages = model.spec.stages;
  llvm::Expected<std::vector<ManifestLane>> lanes = describeLanes(*model.module, model.spec);
  if (!lanes)
    return lanes.takeError();
  manifest.lanes = std::move(*lanes);
  if (auto unused = (*model.module)->getAttrOfType<mlir::ArrayAttr>("batten.unused"))
    for (auto name : unused.getAsRange<mlir::StringAttr>()) {
      summary.unusedTensors.push_back(name.str());
      manifest.notes.emplace_back("unused tensor", name.str());
    }
  return llvm::Error::success();
}

/// Index of the file in the manifest.
uint32_t Compilation::keep(WrittenFile file, batten_file_kind kind) {
  summary.files.push_back({file.path, file.bytes});
  summary.bytes += file.bytes;
  manifest.files.push_back({std::move(file), kind});
  return static_cast<uint32_t>(manifest.files.size() - 1);
}

llvm::Error Compilation::writeBothPacks(BundleSink &sink) {
  llvm::Expected<PlacedPacks> packs = placePacks(*model.module);
  if (!packs)
    return packs.takeError();
  llvm::Expected<std::array<WrittenFile, 2>> files =
      writePacks(sink, *packs, *model.checkpoint,
                 [this](llvm::StringRef path, uint64_t done, uint64_t total) { tell(path.str(), done, total); });
  if (!files)
    return files.takeError();
  setPackDigests(*model.module, digestText((*files)[BATTEN_PACK_COMMON].digest),
                 digestText((*files)[BATTEN_PACK_PANELS].digest));
  for (WrittenFile &file : *files)
    keep(std::move(file), BATTEN_FILE_PACK);
  return llvm::Error::success();
}

llvm::Error Compilation::writeTarget(BundleSink &sink, uint32_t index, const KernelImage &image) {
  const Target &target = targets[index];
  setKernelEntries(*model.module, target, image);
  llvm::Expected<WrittenFile> file = writeImage(sink, target.name, image.bytes, image.codeOffset, image.codeBytes);
  if (!file)
    return file.takeError();
  manifest.targets.push_back(
      manifestTarget(target, model.spec.precision, image, keep(std::move(*file), BATTEN_FILE_IMAGE)));
  for (uint32_t lane = 0; lane < manifest.lanes.size(); ++lane) {
    auto program = model.module->lookupSymbol<plan::ProgramOp>(manifest.lanes[lane].name);
    uint32_t bucket = 0;
    for (auto layout : program.getOps<plan::LayoutOp>()) {
      file = writePlan(context, sink, layout);
      if (!file)
        return file.takeError();
      manifest.plans.push_back({lane, bucket++, index, keep(std::move(*file), BATTEN_FILE_PLAN)});
    }
  }
  return llvm::Error::success();
}

llvm::Error Compilation::writeFiles(BundleSink &sink) {
  begin("emit kernels and pack weights");
  mlir::FailureOr<llvm::SmallVector<KernelKey>> keys = planKernelKeys(*model.module);
  if (mlir::failed(keys))
    return context.takeError("a kernel key is broken");
  using Made = std::future<std::shared_ptr<llvm::Expected<KernelImage>>>;
  std::vector<Made> images;
  auto policy = request.threads == 1 ? std::launch::deferred : std::launch::async;
  for (const Target &target : targets)
    images.push_back(std::async(policy, [&target, &keys] {
      return std::make_shared<llvm::Expected<KernelImage>>(makeKernelImage(*keys, target));
    }));
  llvm::Error failed = writeBothPacks(sink);
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

llvm::Error Compilation::measure(const std::string &directory) {
  GateSpec gate = model.spec.gate.overriddenBy(request.gate);
  if (!gate.isGiven())
    return llvm::Error::success();
  std::string place = gate.place.empty() ? "gate" : gate.place + ": [gate]";
  if (gate.batches.empty())
    return makeError(place + ": no batch to measure with: a path as batch in [gate], or --batch, wanted");
  if (!request.measure)
    return makeError(place + ": this caller measures none, so the bundle can't pass it");
  begin("gate", std::to_string(gate.batches.size()) + (gate.batches.size() == 1 ? " batch" : " batches"));
  llvm::Expected<CompileNotes> notes = request.measure(directory, gate);
  if (!notes)
    return notes.takeError();
  manifest.notes.insert(manifest.notes.end(), notes->begin(), notes->end());
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
  size_t noteCount = compilation.manifest.notes.size();
  if (llvm::Error error = compilation.measure((*writer)->stagingPath()))
    return std::move(error);
  if (compilation.manifest.notes.size() != noteCount)
    if (llvm::Error error = compilation.writeManifest(**writer))
      return std::move(error);
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
  std::vector<CompiledBlob> blobs = takeBlobs(files);
  if (llvm::Error error = compilation.writeManifest(manifest))
    return std::move(error);
  blobs.push_back(std::move(takeBlobs(manifest).front()));
  if (request.selfTest) {
    compilation.begin("self-test");
    if (llvm::Error error = addSelfTests(blobs, compilation.manifest, compilation.summary.notes))
      return std::move(error);
    blobs.pop_back();
    if (llvm::Error error = compilation.writeManifest(manifest))
      return std::move(error);
    blobs.push_back(std::move(takeBlobs(manifest).front()));
  }
  compilation.end();
  if (summary)
    *summary = std::move(compilation.summary);
  return std::move(blobs);
}

} // namespace batten
