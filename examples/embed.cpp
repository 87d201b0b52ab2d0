// Embeds two sequences of token ids with the C++ API and prints how alike they are.
//
//   embed NAME.batten
//
// The bundle's main lane must give one row a sequence, e.g. a sentence-transformers model. Tokenizing is not shown: ids
// come from the model's own tokenizer.
#include <batten/batten.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

static int failed(const char *what, const batten::Error &error) {
  std::fprintf(stderr, "%s: %s: %s\n", what, batten_status_name(error.status), error.message);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s NAME.batten\n", argv[0]);
    return 2;
  }

  // Once, at start. A bundle is immutable and shared by threads; each thread that runs has an executor of its own. A pool
  // lets one run use several threads; it is shared too.
  auto bundle = batten::Bundle::open(argv[1]);
  if (!bundle)
    return failed(argv[1], bundle.error());
  auto pool = batten::Pool::create();
  if (!pool)
    return failed("pool", pool.error());
  auto executor = batten::Executor::create(*bundle, &*pool);
  if (!executor)
    return failed(argv[1], executor.error());

  // A request: sequences end to end, no padding. Sequence s has tokens cuSeqlens[s] to cuSeqlens[s + 1].
  const std::vector<int32_t> ids = {5, 6, 7, 8, 9, 5, 6, 7, 9};
  const std::vector<int32_t> cuSeqlens = {0, 5, 9};

  batten_lane_info_t lane;
  if (batten_bundle_get_lane(bundle->get(), 0, &lane) != BATTEN_OK)
    return 1;
  std::vector<batten::Output> outputs(lane.outputCount);
  // Nothing is allocated here. The rows stay valid until this executor's next run.
  auto bucket = executor->run({.tokenIds = ids, .cuSeqlens = cuSeqlens}, outputs);
  if (!bucket)
    return failed("run", bucket.error());
  if (outputs[0].rows != 2) {
    std::fprintf(stderr, "%s: its main lane does not give one row a sequence\n", argv[1]);
    return 1;
  }

  auto a = outputs[0].row(0), b = outputs[0].row(1);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double(a[i]) * b[i];
    aa += double(a[i]) * a[i];
    bb += double(b[i]) * b[i];
  }
  std::printf("%.6f\n", ab / std::sqrt(aa * bb));
}
