// See BundleBuilder.h. Tests only: it throws or stops where a test has a mistake.
#include "BundleBuilder.h"

#include "Cpu.h"
#include "Sha256.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace batten::test {
namespace {

uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// The runtime's own hash without asking the CPU each time, which is dear in a virtual machine.
void digestOf(const uint8_t *data, size_t bytes, uint8_t *digest) {
  static const bool accelerated = rt::CpuInfo::detect().hasSha;
  rt::sha256(data, bytes, accelerated, digest);
}

template <typename T> T recordAt(const FileBytes &file, size_t offset) {
  T record;
  std::memcpy(&record, file.data() + offset, sizeof record);
  return record;
}

std::string textAt(const FileBytes &file, batten_string_t string) {
  size_t strings = sectionOffset(file, BATTEN_SECTION_STRINGS);
  return std::string(reinterpret_cast<const char *>(file.data()) + strings + string.offset, string.bytes);
}

} // namespace

batten_string_t Strings::add(std::string_view text) {
  size_t at = bytes.find(text);
  if (at == std::string::npos) {
    at = bytes.size();
    bytes += text;
  }
  return {static_cast<uint32_t>(at), static_cast<uint32_t>(text.size())};
}

void FileWriter::add(uint32_t kind, uint32_t recordBytes, const void *data, uint64_t count, uint64_t alignment) {
  const uint8_t *bytes = static_cast<const uint8_t *>(data);
  Section section{{kind, recordBytes, 0, count, 0}, {}, alignment};
  if (count)
    section.bytes.assign(bytes, bytes + recordBytes * count);
  sections_.push_back(std::move(section));
}

FileBytes FileWriter::finish() const {
  batten_file_header_t header = {};
  std::memcpy(header.magic, BATTEN_MAGIC, 8);
  header.kind = kind_;
  header.major = BATTEN_FORMAT_MAJOR;
  header.minor = BATTEN_FORMAT_MINOR;
  header.sectionCount = static_cast<uint32_t>(sections_.size());
  header.headerBytes = sizeof header;
  FileBytes file(sizeof header + sections_.size() * sizeof(batten_section_t));
  uint64_t covered = 0;
  for (size_t i = 0; i < sections_.size(); ++i) {
    batten_section_t record = sections_[i].record;
    record.offset = roundUp(file.size(), sections_[i].alignment);
    file.resize(record.offset);
    if (record.kind == BATTEN_SECTION_DATA)
      covered = record.offset;
    file.insert(file.end(), sections_[i].bytes.begin(), sections_[i].bytes.end());
    std::memcpy(file.data() + sizeof header + i * sizeof record, &record, sizeof record);
  }
  header.fileBytes = file.size();
  std::memcpy(file.data(), &header, sizeof header);
  sealHeader(file, covered ? covered : file.size());
  return file;
}

void sealHeader(uint8_t *file, uint64_t coveredBytes) {
  uint8_t *digest = file + offsetof(batten_file_header_t, digest);
  std::memset(digest, 0, 32);
  uint8_t found[32];
  digestOf(file, coveredBytes, found);
  std::memcpy(digest, found, 32);
}

static batten_section_t findSection(const FileBytes &file, uint32_t kind) {
  const auto header = recordAt<batten_file_header_t>(file, 0);
  for (uint32_t i = 0; i < header.sectionCount; ++i)
    if (const auto section = recordAt<batten_section_t>(file, sizeof header + i * sizeof(batten_section_t));
        section.kind == kind)
      return section;
  return {0, 0, std::string::npos, 0, 0};
}

size_t sectionOffset(const FileBytes &file, uint32_t kind) { return findSection(file, kind).offset; }
size_t sectionCount(const FileBytes &file, uint32_t kind) { return findSection(file, kind).count; }

void PackSpec::add(std::string_view name, uint32_t layout, uint32_t rows, uint32_t cols,
                   const std::vector<float> &values) {
  std::vector<float> laid;
  if (layout == BATTEN_LAYOUT_PANELS) {
    laid.resize(roundUp(rows, 32) * cols);
    for (uint32_t n = 0; n < rows; ++n)
      for (uint32_t k = 0; k < cols; ++k)
        laid[(uint64_t{n / 32} * cols + k) * 32 + n % 32] = values[n * cols + k];
  } else {
    laid = values;
    laid.resize((uint64_t{rows} - 1) * cols + roundUp(cols, 16));
  }
  laid.resize(roundUp(laid.size(), 16));
  tensors.push_back({strings.add(name), layout, BATTEN_ELEM_F32, rows, cols, data.size(), laid.size() * 4});
  const uint8_t *bytes = reinterpret_cast<const uint8_t *>(laid.data());
  data.insert(data.end(), bytes, bytes + laid.size() * 4);
}

void PlanSpec::addStep(std::string_view label, uint32_t kernel, uint32_t rowKind, std::vector<batten_operand_t> ops) {
  batten_step_t step = {};
  step.label = strings.add(label);
  step.kernel = kernel;
  step.rowKind = rowKind;
  step.firstOperand = static_cast<uint32_t>(operands.size());
  step.operandCount = static_cast<uint32_t>(ops.size());
  operands.insert(operands.end(), ops.begin(), ops.end());
  steps.push_back(step);
}

Files serialize(BundleSpec spec) {
  Files files;
  std::vector<batten_file_t> records;
  auto record = [&](const std::string &path, uint32_t kind, uint64_t headBytes) {
    const FileBytes &bytes = files.at(path);
    batten_file_t file = {};
    file.path = spec.strings.add(path);
    file.kind = kind;
    file.bytes = bytes.size();
    digestOf(bytes.data(), bytes.size(), file.digest);
    if ((file.headBytes = headBytes))
      digestOf(bytes.data(), headBytes, file.headDigest);
    records.push_back(file);
    return file;
  };
  std::map<std::string, batten_tensor_t> tensors;
  for (PackSpec &pack : spec.packs) {
    // The head's size depends on its sections only: written once to learn it.
    uint64_t dataOffset = 0;
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<batten_tensor_t> placed = pack.tensors;
      for (batten_tensor_t &tensor : placed)
        tensor.offset += dataOffset;
      pack.pack.dataOffset = dataOffset;
      pack.pack.dataBytes = pack.data.size();
      FileWriter writer(BATTEN_FILE_PACK);
      writer.add(BATTEN_SECTION_STRINGS, 1, pack.strings.bytes.data(), pack.strings.bytes.size());
      writer.add(BATTEN_SECTION_PACK, sizeof pack.pack, &pack.pack, 1);
      writer.add(BATTEN_SECTION_TENSORS, placed);
      writer.add(BATTEN_SECTION_DATA, 1, pack.data.data(), pack.data.size(), 4096);
      files[pack.path] = writer.finish();
      dataOffset = sectionOffset(files[pack.path], BATTEN_SECTION_DATA);
      for (const batten_tensor_t &tensor : placed)
        tensors[pack.strings.bytes.substr(tensor.name.offset, tensor.name.bytes)] = tensor;
    }
    record(pack.path, BATTEN_FILE_PACK, dataOffset);
  }
  for (auto &[path, bytes] : spec.images) {
    files[path] = bytes;
    record(path, BATTEN_FILE_IMAGE, 0);
  }
  std::vector<batten_plan_ref_t> refs;
  for (uint32_t i = 0; i < spec.plans.size(); ++i) {
    PlanSpec &plan = spec.plans[i];
    if (!plan.ownDigests) {
      std::memcpy(plan.plan.commonDigest, records.at(0).digest, 32);
      std::memcpy(plan.plan.panelsDigest, records.at(1).digest, 32);
      std::memcpy(plan.plan.imageDigest, records.at(spec.imageFile(plan.target)).digest, 32);
    }
    for (batten_weight_t &weight : plan.weights)
      if (auto found = tensors.find(plan.strings.bytes.substr(weight.name.offset, weight.name.bytes));
          found != tensors.end())
        weight.offset += found->second.offset;
    FileWriter writer(BATTEN_FILE_PLAN);
    writer.add(BATTEN_SECTION_STRINGS, 1, plan.strings.bytes.data(), plan.strings.bytes.size());
    writer.add(BATTEN_SECTION_PLAN, sizeof plan.plan, &plan.plan, 1);
    writer.add(BATTEN_SECTION_BUFFERS, plan.buffers);
    writer.add(BATTEN_SECTION_WEIGHTS, plan.weights);
    writer.add(BATTEN_SECTION_KERNELS, plan.kernels);
    writer.add(BATTEN_SECTION_OPERANDS, plan.operands);
    writer.add(BATTEN_SECTION_STEPS, plan.steps);
    writer.add(BATTEN_SECTION_PLAN_OUTPUTS, plan.outputs);
    files[plan.path] = writer.finish();
    record(plan.path, BATTEN_FILE_PLAN, 0);
    refs.push_back({plan.lane, plan.bucket, plan.target, spec.planFile(i)});
  }
  spec.files = records;
  if (spec.bend)
    spec.bend(spec, refs);
  FileWriter writer(BATTEN_FILE_MANIFEST);
  writer.add(BATTEN_SECTION_STRINGS, 1, spec.strings.bytes.data(), spec.strings.bytes.size());
  writer.add(BATTEN_SECTION_PRODUCER, sizeof spec.producer, &spec.producer, 1);
  writer.add(BATTEN_SECTION_FILES, spec.files);
  writer.add(BATTEN_SECTION_TARGETS, spec.targets);
  writer.add(BATTEN_SECTION_STAGES, spec.stages);
  writer.add(BATTEN_SECTION_BUCKETS, spec.buckets);
  writer.add(BATTEN_SECTION_LANES, spec.lanes);
  writer.add(BATTEN_SECTION_OUTPUTS, spec.outputs);
  writer.add(BATTEN_SECTION_PLANS, refs);
  writer.add(BATTEN_SECTION_NOTES, spec.notes);
  writer.add(BATTEN_SECTION_WORDS, spec.words);
  writer.add(BATTEN_SECTION_SELF_TESTS, spec.selfTests);
  files["manifest.bin"] = writer.finish();
  return files;
}

Sealer::Sealer(const Files &intact) {
  const FileBytes &manifest = intact.at("manifest.bin");
  manifestBytes_ = manifest.size();
  filesAt_ = sectionOffset(manifest, BATTEN_SECTION_FILES);
  for (size_t i = 0; i + 1 < intact.size(); ++i) {
    const auto record = recordAt<batten_file_t>(manifest, filesAt_ + i * sizeof(batten_file_t));
    files_.push_back({textAt(manifest, record.path), record});
    if (record.kind == BATTEN_FILE_PLAN)
      files_.back().plan = sectionOffset(intact.at(files_.back().path), BATTEN_SECTION_PLAN);
  }
  const size_t plans = sectionOffset(manifest, BATTEN_SECTION_PLANS),
               targets = sectionOffset(manifest, BATTEN_SECTION_TARGETS);
  for (size_t i = 0, count = sectionCount(manifest, BATTEN_SECTION_PLANS); i < count; ++i) {
    const auto ref = recordAt<batten_plan_ref_t>(manifest, plans + i * sizeof(batten_plan_ref_t));
    files_[ref.file].target = recordAt<batten_target_t>(manifest, targets + ref.target * sizeof(batten_target_t));
  }
}

void Sealer::sealFile(size_t file, const Access &data) const {
  uint8_t *record = data(kManifest) + filesAt_ + file * sizeof(batten_file_t);
  const batten_file_t &intact = files_[file].record;
  if (intact.kind == BATTEN_FILE_PACK) {
    sealHeader(data(file), intact.headBytes);
    digestOf(data(file), intact.headBytes, record + offsetof(batten_file_t, headDigest));
  }
  digestOf(data(file), intact.bytes, record + offsetof(batten_file_t, digest));
}

void Sealer::sealPlan(size_t file, const Access &data) const {
  const File &plan = files_[file];
  const uint8_t *records = data(kManifest) + filesAt_ + offsetof(batten_file_t, digest);
  uint8_t *out = data(file) + plan.plan;
  std::memcpy(out + offsetof(batten_plan_t, imageDigest), records + plan.target.image * sizeof(batten_file_t), 32);
  std::memcpy(out + offsetof(batten_plan_t, commonDigest), records + plan.target.commonPack * sizeof(batten_file_t),
              32);
  std::memcpy(out + offsetof(batten_plan_t, panelsDigest), records + plan.target.panelsPack * sizeof(batten_file_t),
              32);
  sealHeader(data(file), plan.record.bytes);
  sealFile(file, data);
}

void Sealer::seal(size_t changed, const Access &data) const {
  if (changed != kManifest && files_[changed].record.kind == BATTEN_FILE_PLAN) {
    sealPlan(changed, data);
  } else if (changed != kManifest) {
    sealFile(changed, data);
    for (size_t i = 0; i < files_.size(); ++i)
      if (files_[i].record.kind == BATTEN_FILE_PLAN)
        sealPlan(i, data);
  }
  sealHeader(data(kManifest), manifestBytes_);
}

void Sealer::sealAll(const Access &data) const {
  for (size_t i = 0; i < files_.size(); ++i)
    if (files_[i].record.kind != BATTEN_FILE_PLAN)
      sealFile(i, data);
  for (size_t i = 0; i < files_.size(); ++i)
    if (files_[i].record.kind == BATTEN_FILE_PLAN)
      sealPlan(i, data);
  sealHeader(data(kManifest), manifestBytes_);
}

void reseal(Files &files, const Files &original) {
  const Sealer sealer(original);
  sealer.sealAll(
      [&](size_t file) { return files.at(file == Sealer::kManifest ? "manifest.bin" : sealer.path(file)).data(); });
}

Blobs::Blobs(const Files &files) {
  for (const auto &[path, bytes] : files) {
    void *memory = std::aligned_alloc(64, roundUp(bytes.size() + 1, 64));
    std::memcpy(memory, bytes.data(), bytes.size());
    paths_.push_back(path);
    memory_.emplace_back(memory);
    list_.push_back({nullptr, memory, bytes.size()});
  }
  for (size_t i = 0; i < list_.size(); ++i)
    list_[i].path = paths_[i].c_str();
}

uint8_t *Blobs::data(const std::string &path) {
  for (size_t i = 0; i < paths_.size(); ++i)
    if (paths_[i] == path)
      return static_cast<uint8_t *>(memory_[i].get());
  throw std::runtime_error("no blob " + path);
}

TempDir::TempDir() {
  std::string pattern = std::filesystem::temp_directory_path() / "batten-XXXXXX";
  if (!::mkdtemp(pattern.data()))
    throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void writeFiles(const Files &files, const std::string &directory) {
  namespace fs = std::filesystem;
  fs::create_directories(directory);
  fs::permissions(directory, fs::perms(0755));
  for (const auto &[path, bytes] : files) {
    const fs::path full = fs::path(directory) / path;
    fs::create_directories(full.parent_path());
    for (fs::path folder = full.parent_path(); folder != directory; folder = folder.parent_path())
      fs::permissions(folder, fs::perms(0755));
    std::ofstream(full, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    fs::permissions(full, fs::perms(0644));
  }
}

FileBytes readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("no file " + path);
  return FileBytes(std::istreambuf_iterator<char>(file), {});
}

} // namespace batten::test
