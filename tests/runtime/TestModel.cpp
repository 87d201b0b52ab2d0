// See TestModel.h.
#include "TestModel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <elf.h>

namespace batten::test {
namespace {

/// Weights of the tiny model, the same every time.
struct Checkpoint {
  std::vector<float> words, types, positions, w1, b1, w2, b2, gamma, beta;

  Checkpoint() {
    std::mt19937 random(7);
    auto fill = [&](std::vector<float> &values, size_t count) {
      std::uniform_real_distribution<float> distribution(-0.5f, 0.5f);
      values.resize(count);
      for (float &value : values)
        value = distribution(random);
    };
    fill(words, kIds * kWidth), fill(types, kTypes * kWidth), fill(positions, kPositions * kWidth);
    fill(w1, kInner * kWidth), fill(b1, kInner), fill(w2, kWidth * kInner), fill(b2, kWidth);
    fill(gamma, kWidth), fill(beta, kWidth);
  }
};

const Checkpoint &checkpoint() {
  static const Checkpoint instance;
  return instance;
}

/// The test image: where its one R+X segment is, and where each kernel starts in the file.
struct Image {
  FileBytes bytes;
  uint64_t codeOffset = 0, codeBytes = 0;
  std::map<std::string, std::pair<uint64_t, uint64_t>> entries;

  Image() : bytes(readBytes(BATTEN_TEST_IMAGE)) {
    auto header = at<Elf64_Ehdr>(0);
    uint64_t address = 0;
    for (int i = 0; i < header.e_phnum; ++i)
      if (auto segment = at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
          segment.p_type == PT_LOAD && segment.p_flags & PF_X) {
        codeOffset = segment.p_offset, codeBytes = segment.p_filesz, address = segment.p_vaddr;
      }
    for (int i = 0; i < header.e_shnum; ++i) {
      auto section = at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type != SHT_DYNSYM)
        continue;
      auto strings = at<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
      for (uint64_t s = 0; s < section.sh_size / sizeof(Elf64_Sym); ++s) {
        auto symbol = at<Elf64_Sym>(section.sh_offset + s * sizeof(Elf64_Sym));
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
          entries[reinterpret_cast<const char *>(bytes.data()) + strings.sh_offset + symbol.st_name] = {
              symbol.st_value - address + codeOffset, symbol.st_size};
      }
    }
  }
  template <typename T> T at(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
};

const Image &image() {
  static const Image instance;
  return instance;
}

uint64_t stride(uint32_t width) { return (width + 15) / 16 * 64; }

/// Fills a plan; buffers 0 x, 1 e, 2 y, 3 z, 4 p.
PlanSpec modelPlan(uint32_t lane, uint32_t bucketIndex, const Bucket &bucket) {
  PlanSpec spec;
  const char *laneName = lane == 0 ? "embed" : "encode";
  spec.lane = lane, spec.bucket = bucketIndex;
  spec.path = std::string("plans/base/") + laneName + "-" + std::to_string(bucket.tokens) + "x" +
              std::to_string(bucket.seqs) + "x" + std::to_string(bucket.markers) + ".plan";
  batten_plan_t &plan = spec.plan;
  plan.lane = spec.strings.add(laneName), plan.target = spec.strings.add("base");
  plan.kernelAbi = BATTEN_KERNEL_ABI_VERSION;
  plan.tokens = bucket.tokens, plan.seqs = bucket.seqs, plan.markers = bucket.markers;
  plan.scratchBytes = (kPositions * 4 + 63) / 64 * 64;

  const uint64_t narrow = bucket.tokens * stride(kWidth), wide = bucket.tokens * stride(kInner),
                 pooled = bucket.seqs * stride(kWidth);
  const uint64_t zAt = 2 * narrow + wide, end = zAt + wide;
  const uint64_t pooledAt = pooled <= wide ? 2 * narrow : end; // y is dead by then
  spec.buffers = {{BATTEN_ROWS_TOKENS, kWidth, BATTEN_ELEM_F32, 0, stride(kWidth), 0},
                  {BATTEN_ROWS_TOKENS, kWidth, BATTEN_ELEM_F32, 0, stride(kWidth), narrow},
                  {BATTEN_ROWS_TOKENS, kInner, BATTEN_ELEM_F32, 0, stride(kInner), 2 * narrow},
                  {BATTEN_ROWS_TOKENS, kInner, BATTEN_ELEM_F32, 0, stride(kInner), zAt},
                  {BATTEN_ROWS_SEQS, kWidth, BATTEN_ELEM_F32, 0, stride(kWidth), pooledAt}};
  plan.arenaBytes = pooledAt == end ? end + pooled : end;
  plan.lowerBoundBytes = std::max(2 * narrow + 2 * wide, narrow + pooled);

  auto weight = [&](std::string_view name, uint32_t pack, uint32_t layout, uint32_t rows, uint32_t cols) {
    uint64_t elems =
        layout == BATTEN_LAYOUT_PANELS ? (rows + 31) / 32 * 32 * cols : (rows - 1) * cols + (cols + 15) / 16 * 16;
    spec.weights.push_back(
        {spec.strings.add(name), pack, layout, BATTEN_ELEM_F32, rows, cols, 0, 0, (elems + 15) / 16 * 64});
  };
  weight("words", 0, BATTEN_LAYOUT_TABLE, kIds, kWidth);
  weight("types", 0, BATTEN_LAYOUT_TABLE, kTypes, kWidth);
  weight("positions", 0, BATTEN_LAYOUT_TABLE, kPositions, kWidth);
  weight("b1", 0, BATTEN_LAYOUT_VECTOR, 1, kInner);
  weight("b2", 0, BATTEN_LAYOUT_VECTOR, 1, kWidth);
  weight("gamma", 0, BATTEN_LAYOUT_VECTOR, 1, kWidth);
  weight("beta", 0, BATTEN_LAYOUT_VECTOR, 1, kWidth);
  weight("w1", 1, BATTEN_LAYOUT_PANELS, kInner, kWidth);
  weight("w2", 1, BATTEN_LAYOUT_PANELS, kWidth, kInner);

  auto kernel = [&](std::string_view name, uint32_t domain, uint32_t panels, uint32_t heads, uint32_t operands,
                    uint32_t mayOverwrite) {
    auto [entry, bytes] = kernelEntry(name);
    spec.kernels.push_back({spec.strings.add(name), spec.strings.add("width = 20"), entry, bytes, domain, panels,
                            panels ? 8u : 0u, heads, operands, mayOverwrite});
  };
  kernel("embed_20_wtp", BATTEN_DOMAIN_ROWS, 0, 0, 4, 0);
  kernel("embed_20_p", BATTEN_DOMAIN_ROWS, 0, 0, 2, 0);
  kernel("linear_20x40_bias", BATTEN_DOMAIN_PANELS, 2, 0, 4, 0);
  kernel("mix_2x20", BATTEN_DOMAIN_TASKS, 0, 2, 2, 0);
  kernel("linear_40x20_bias_res", BATTEN_DOMAIN_PANELS, 1, 0, 5, 1);
  kernel("layer_norm_20", BATTEN_DOMAIN_ROWS, 0, 0, 4, 1);
  kernel("add_20", BATTEN_DOMAIN_ROWS, 0, 0, 3, 1);
  kernel("pool_mean_20", BATTEN_DOMAIN_ROWS, 0, 0, 2, 0);

  auto in = [](uint32_t i) { return batten_operand_t{BATTEN_OPERAND_BUFFER, i, BATTEN_ACCESS_READ, 0}; };
  auto out = [](uint32_t i) { return batten_operand_t{BATTEN_OPERAND_BUFFER, i, BATTEN_ACCESS_WRITE, 0}; };
  auto inout = [](uint32_t i) { return batten_operand_t{BATTEN_OPERAND_BUFFER, i, BATTEN_ACCESS_READWRITE, 0}; };
  auto w = [](uint32_t i) { return batten_operand_t{BATTEN_OPERAND_WEIGHT, i, BATTEN_ACCESS_READ, 0}; };
  spec.addStep("embed", 0, BATTEN_ROWS_TOKENS, {w(0), w(1), w(2), out(0)});
  spec.addStep("positions", 1, BATTEN_ROWS_TOKENS, {w(2), out(1)});
  spec.addStep("widen", 2, BATTEN_ROWS_TOKENS, {in(0), w(7), w(3), out(2)});
  spec.addStep("mix", 3, BATTEN_ROWS_TOKENS, {in(2), out(3)});
  spec.steps.back().scratchBytes = plan.scratchBytes;
  spec.addStep("narrow", 4, BATTEN_ROWS_TOKENS, {in(3), w(8), w(4), inout(0)});
  spec.addStep("norm", 5, BATTEN_ROWS_TOKENS, {w(5), w(6), inout(0)});
  spec.addStep("again", 6, BATTEN_ROWS_TOKENS, {in(1), inout(0)});
  spec.addStep("pool", 7, BATTEN_ROWS_SEQS, {in(0), out(4)});
  if (lane == 0)
    spec.outputs = {{spec.strings.add("embedding"), 4, 0}};
  else
    spec.outputs = {{spec.strings.add("hidden"), 0, 0}, {spec.strings.add("pooled"), 4, 0}};
  return spec;
}

} // namespace

BundleSpec modelSpec(const std::vector<Bucket> &buckets) {
  const Checkpoint &weights = checkpoint();
  BundleSpec spec;
  spec.producer = {spec.strings.add("batten"), spec.strings.add("0.1.0-test"), spec.strings.add("none"),
                   BATTEN_KERNEL_ABI_VERSION, 0};
  spec.packs.resize(2);
  spec.packs[0].path = "packs/common.pack", spec.packs[0].pack = {BATTEN_PACK_COMMON, BATTEN_ALIGNMENT, 0, 0};
  spec.packs[1].path = "packs/panels.pack", spec.packs[1].pack = {BATTEN_PACK_PANELS, BATTEN_ALIGNMENT, 0, 0};
  spec.packs[0].add("words", BATTEN_LAYOUT_TABLE, kIds, kWidth, weights.words);
  spec.packs[0].add("types", BATTEN_LAYOUT_TABLE, kTypes, kWidth, weights.types);
  spec.packs[0].add("positions", BATTEN_LAYOUT_TABLE, kPositions, kWidth, weights.positions);
  spec.packs[0].add("b1", BATTEN_LAYOUT_VECTOR, 1, kInner, weights.b1);
  spec.packs[0].add("b2", BATTEN_LAYOUT_VECTOR, 1, kWidth, weights.b2);
  spec.packs[0].add("gamma", BATTEN_LAYOUT_VECTOR, 1, kWidth, weights.gamma);
  spec.packs[0].add("beta", BATTEN_LAYOUT_VECTOR, 1, kWidth, weights.beta);
  spec.packs[1].add("w1", BATTEN_LAYOUT_PANELS, kInner, kWidth, weights.w1);
  spec.packs[1].add("w2", BATTEN_LAYOUT_PANELS, kWidth, kInner, weights.w2);
  spec.images = {{"images/base.img", image().bytes}};
  spec.targets = {{spec.strings.add("base"), kArch, BATTEN_ELEM_F32, BATTEN_ELEM_F32, 2, 0, 1, 0, image().codeOffset,
                   image().codeBytes}};
  spec.stages = {{spec.strings.add("text"), 0, static_cast<uint32_t>(buckets.size())}};
  for (const Bucket &bucket : buckets)
    spec.buckets.push_back({bucket.tokens, bucket.seqs, bucket.markers, 0});
  spec.lanes = {{spec.strings.add("embed"), 0, 0, 1, BATTEN_INPUT_TOKEN_TYPES, kIds, kTypes, 0, kPositions},
                {spec.strings.add("encode"), 0, 1, 2, BATTEN_INPUT_TOKEN_TYPES, kIds, kTypes, 0, kPositions}};
  spec.outputs = {{spec.strings.add("embedding"), BATTEN_ROWS_SEQS, kWidth, BATTEN_ELEM_F32, 0},
                  {spec.strings.add("hidden"), BATTEN_ROWS_TOKENS, kWidth, BATTEN_ELEM_F32, 0},
                  {spec.strings.add("pooled"), BATTEN_ROWS_SEQS, kWidth, BATTEN_ELEM_F32, 0}};
  spec.notes = {{spec.strings.add("family"), spec.strings.add("test")}};
  for (uint32_t lane = 0; lane < 2; ++lane)
    for (uint32_t i = 0; i < buckets.size(); ++i)
      spec.plans.push_back(modelPlan(lane, i, buckets[i]));
  // A self-test: sequences of 3 and 2 tokens.
  spec.words = {1, 2, 3, 4, 5, 0, 3, 5};
  batten_self_test_t test = {};
  test.lane = 0, test.tokens = 5, test.seqs = 2;
  test.ids = 0, test.cuSeqlens = 5;
  test.types = test.markerPos = test.cuMarkers = test.seqTypes = UINT32_MAX;
  Batch batch;
  batch.ids = {1, 2, 3, 4, 5}, batch.types = {0, 0, 0, 0, 0}, batch.cuSeqlens = {0, 3, 5};
  const Outputs expected = reference(batch);
  batten_sha256(expected.pooled.data(), expected.pooled.size() * 4, test.digest);
  spec.selfTests = {test};
  return spec;
}

void addTarget(BundleSpec &spec, std::string_view name, uint32_t arch, uint64_t features) {
  const uint32_t target = static_cast<uint32_t>(spec.targets.size());
  batten_target_t record = spec.targets[0];
  record.name = spec.strings.add(name), record.arch = arch, record.features = features;
  record.image = spec.imageFile(target);
  spec.targets.push_back(record);
  spec.images.push_back({"images/" + std::string(name) + ".img", spec.images[0].second});
  const size_t plans = spec.plans.size();
  for (size_t i = 0; i < plans; ++i) {
    if (spec.plans[i].target != 0)
      continue;
    PlanSpec plan = spec.plans[i];
    plan.target = target;
    plan.plan.target = plan.strings.add(name);
    plan.path.replace(plan.path.find("base"), 4, name);
    spec.plans.push_back(plan);
  }
}

std::pair<uint64_t, uint64_t> kernelEntry(std::string_view name) { return image().entries.at(std::string(name)); }

const float *wordTable() { return checkpoint().words.data(); }

size_t planOf(const BundleSpec &spec, uint32_t lane, uint32_t bucket) {
  for (size_t i = 0; i < spec.plans.size(); ++i)
    if (spec.plans[i].lane == lane && spec.plans[i].bucket == bucket && spec.plans[i].target == 0)
      return i;
  throw std::runtime_error("no such plan");
}

batten_batch_t Batch::view() const {
  batten_batch_t batch = BATTEN_BATCH_INIT;
  batch.tokenIds = ids.data(), batch.tokenTypes = types.empty() ? nullptr : types.data(),
  batch.cuSeqlens = cuSeqlens.data();
  batch.markers = markers.empty() ? nullptr : markers.data(),
  batch.cuMarkers = cuMarkers.empty() ? nullptr : cuMarkers.data();
  batch.seqTypes = seqTypes.empty() ? nullptr : seqTypes.data();
  batch.tokenCount = tokens(), batch.seqCount = seqs(), batch.markerCount = static_cast<uint32_t>(markers.size());
  return batch;
}

Batch makeBatch(const std::vector<uint32_t> &lengths, uint32_t seed) {
  std::mt19937 random(seed);
  Batch batch;
  batch.cuSeqlens = {0};
  for (uint32_t length : lengths) {
    for (uint32_t i = 0; i < length; ++i) {
      batch.ids.push_back(static_cast<int32_t>(random() % kIds));
      batch.types.push_back(static_cast<int32_t>(random() % kTypes));
    }
    batch.cuSeqlens.push_back(static_cast<int32_t>(batch.ids.size()));
  }
  return batch;
}

Batch sequenceOf(const Batch &batch, uint32_t s) {
  Batch alone;
  const auto begin = batch.cuSeqlens[s], end = batch.cuSeqlens[s + 1];
  alone.ids.assign(batch.ids.begin() + begin, batch.ids.begin() + end);
  if (!batch.types.empty())
    alone.types.assign(batch.types.begin() + begin, batch.types.begin() + end);
  alone.cuSeqlens = {0, end - begin};
  if (!batch.cuMarkers.empty()) {
    alone.markers.assign(batch.markers.begin() + batch.cuMarkers[s], batch.markers.begin() + batch.cuMarkers[s + 1]);
    alone.cuMarkers = {0, batch.cuMarkers[s + 1] - batch.cuMarkers[s]};
  }
  if (!batch.seqTypes.empty())
    alone.seqTypes = {batch.seqTypes[s]};
  return alone;
}

Outputs reference(const Batch &batch) {
  const Checkpoint &w = checkpoint();
  Outputs out;
  for (uint32_t s = 0; s < batch.seqs(); ++s) {
    const int begin = batch.cuSeqlens[s], length = batch.cuSeqlens[s + 1] - begin;
    std::vector<float> x(length * kWidth), y(length * kInner), z(length * kInner);
    for (int t = 0; t < length; ++t)
      for (uint32_t c = 0; c < kWidth; ++c)
        x[t * kWidth + c] = w.words[batch.ids[begin + t] * kWidth + c] +
                            w.types[(batch.types.empty() ? 0 : batch.types[begin + t]) * kWidth + c] +
                            w.positions[t * kWidth + c];
    for (int t = 0; t < length; ++t)
      for (uint32_t n = 0; n < kInner; ++n) {
        float sum = 0;
        for (uint32_t k = 0; k < kWidth; ++k)
          sum += x[t * kWidth + k] * w.w1[n * kWidth + k];
        y[t * kInner + n] = sum + w.b1[n];
      }
    for (int t = 0; t < length; ++t)
      for (uint32_t head = 0; head < 2; ++head) {
        std::vector<float> weights(length);
        float total = 0;
        for (int key = 0; key < length; ++key) {
          float distance = 1;
          for (uint32_t c = head * kWidth; c < (head + 1) * kWidth; ++c)
            distance += (y[t * kInner + c] - y[key * kInner + c]) * (y[t * kInner + c] - y[key * kInner + c]);
          total += weights[key] = 1 / distance;
        }
        for (uint32_t c = head * kWidth; c < (head + 1) * kWidth; ++c) {
          float sum = 0;
          for (int key = 0; key < length; ++key)
            sum += weights[key] * y[key * kInner + c];
          z[t * kInner + c] = sum / total;
        }
      }
    std::vector<float> mean(kWidth);
    for (int t = 0; t < length; ++t) {
      float row[kWidth], average = 0, variance = 0;
      for (uint32_t n = 0; n < kWidth; ++n) {
        float sum = 0;
        for (uint32_t k = 0; k < kInner; ++k)
          sum += z[t * kInner + k] * w.w2[n * kInner + k];
        sum += w.b2[n];
        row[n] = sum + x[t * kWidth + n];
      }
      for (float value : row)
        average += value;
      average /= kWidth;
      for (float value : row)
        variance += (value - average) * (value - average);
      variance = variance / kWidth + 1e-5f;
      for (uint32_t c = 0; c < kWidth; ++c) {
        float value = w.positions[t * kWidth + c] + ((row[c] - average) / variance * w.gamma[c] + w.beta[c]);
        out.hidden.push_back(value);
        mean[c] += value;
      }
    }
    for (float value : mean)
      out.pooled.push_back(length ? value / static_cast<float>(length) : 0);
  }
  return out;
}

BundlePtr openBlobs(const Blobs &blobs, batten_error_t *error, const batten_bundle_options_t *options) {
  batten_bundle_t *bundle = nullptr;
  (void)batten_bundle_open_blobs(blobs.list().data(), blobs.list().size(), options, &bundle, error);
  return BundlePtr(bundle);
}

BundlePtr openDirectory(const std::string &path, batten_error_t *error, const batten_bundle_options_t *options) {
  batten_bundle_t *bundle = nullptr;
  (void)batten_bundle_open(path.c_str(), options, &bundle, error);
  return BundlePtr(bundle);
}

PoolPtr makePool(uint32_t threads, uint32_t spinMicroseconds) {
  batten_pool_options_t options = BATTEN_POOL_OPTIONS_INIT;
  options.threads = threads, options.spinMicroseconds = spinMicroseconds;
  batten_pool_t *pool = nullptr;
  batten_error_t error;
  EXPECT_EQ(batten_pool_create(&options, &pool, &error), BATTEN_OK) << error.message;
  return PoolPtr(pool);
}

ExecutorPtr makeExecutor(batten_bundle_t *bundle, batten_pool_t *pool) {
  batten_executor_options_t options = BATTEN_EXECUTOR_OPTIONS_INIT;
  options.pool = pool;
  batten_executor_t *executor = nullptr;
  batten_error_t error;
  EXPECT_EQ(batten_executor_create(bundle, &options, &executor, &error), BATTEN_OK) << error.message;
  return ExecutorPtr(executor);
}

Outputs runModel(batten_executor_t *executor, const Batch &batch, uint32_t bucket) {
  Outputs out;
  out.hidden.resize(batch.tokens() * kWidth + 1), out.pooled.resize(batch.seqs() * kWidth + 1);
  batten_output_view_t views[2] = {};
  views[0].copyTo = out.hidden.data(), views[0].copyBytes = batch.tokens() * kWidth * 4;
  views[1].copyTo = out.pooled.data(), views[1].copyBytes = batch.seqs() * kWidth * 4;
  batten_error_t error;
  const batten_batch_t view = batch.view();
  if (bucket == UINT32_MAX)
    EXPECT_EQ(batten_run_lane(executor, 1, &view, views, 2, nullptr, &error), BATTEN_OK) << error.message;
  else
    EXPECT_EQ(batten_run_in_bucket(executor, 1, bucket, &view, views, 2, &error), BATTEN_OK) << error.message;
  EXPECT_EQ(views[0].rows, batch.tokens());
  EXPECT_EQ(views[1].rows, batch.seqs());
  out.hidden.pop_back(), out.pooled.pop_back();
  return out;
}

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * 4) == 0);
}

uint64_t inspectAll(const batten_bundle_t *bundle) {
  uint64_t sum = 0;
  auto read = [&](batten_text_t text) {
    for (size_t i = 0; i < text.bytes; ++i)
      sum += static_cast<uint8_t>(text.data[i]);
  };
  batten_bundle_info_t info;
  batten_bundle_get_info(bundle, &info);
  read(info.producer), read(info.producerVersion), read(info.llvmVersion);
  batten_target_info_t target;
  for (uint32_t i = 0; batten_bundle_get_target(bundle, i, &target) == BATTEN_OK; ++i)
    read(target.name);
  batten_file_info_t file;
  for (uint32_t i = 0; batten_bundle_get_file(bundle, i, &file) == BATTEN_OK; ++i)
    read(file.path);
  batten_text_t key, value;
  for (uint32_t i = 0; batten_bundle_get_note(bundle, i, &key, &value) == BATTEN_OK; ++i)
    read(key), read(value);
  for (uint32_t i = 0; batten_bundle_get_stage_name(bundle, i, &key) == BATTEN_OK; ++i)
    read(key);
  batten_lane_info_t lane;
  for (uint32_t l = 0; batten_bundle_get_lane(bundle, l, &lane) == BATTEN_OK; ++l) {
    read(lane.name);
    batten_output_info_t output;
    for (uint32_t i = 0; batten_bundle_get_output(bundle, l, i, &output) == BATTEN_OK; ++i)
      read(output.name);
    batten_bucket_info_t bucket;
    for (uint32_t b = 0; batten_bundle_get_bucket(bundle, l, b, &bucket) == BATTEN_OK; ++b) {
      batten_plan_info_t plan;
      EXPECT_EQ(batten_bundle_get_plan(bundle, l, b, &plan), BATTEN_OK);
      batten_step_info_t step;
      for (uint32_t s = 0; batten_bundle_get_step(bundle, l, b, s, &step) == BATTEN_OK; ++s) {
        read(step.label), read(step.kernel), read(step.key);
        batten_operand_info_t operand;
        for (uint32_t o = 0; batten_bundle_get_operand(bundle, l, b, s, o, &operand) == BATTEN_OK; ++o) {
          read(operand.name);
          sum += operand.bytes + operand.offset;
        }
      }
    }
  }
  return sum + info.laneCount;
}

} // namespace batten::test
