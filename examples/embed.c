/* Embeds two sequences of token ids with the C API and prints how alike they are.
 *
 *   embed NAME.batten
 *
 * The bundle's main lane must give one row a sequence, e.g. a sentence-transformers model. Tokenizing is not shown: ids
 * come from the model's own tokenizer. */
#include <batten/batten.h>

#include <math.h>
#include <stdio.h>

static int failed(const char *what, const batten_error_t *error) {
  fprintf(stderr, "%s: %s: %s\n", what, batten_status_name(error->status), error->message);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s NAME.batten\n", argv[0]);
    return 2;
  }

  /* Once, at start. A bundle is immutable and shared by threads; each thread that runs has an executor of its own. */
  batten_error_t error;
  batten_bundle_t *bundle;
  if (batten_bundle_open(argv[1], NULL, &bundle, &error))
    return failed(argv[1], &error);
  batten_executor_t *executor;
  if (batten_executor_create(bundle, NULL, &executor, &error)) {
    batten_bundle_release(bundle);
    return failed(argv[1], &error);
  }

  /* A request: sequences end to end, no padding. Sequence s has tokens cuSeqlens[s] to cuSeqlens[s + 1]. */
  const int32_t ids[] = {5, 6, 7, 8, 9, 5, 6, 7, 9};
  const int32_t cuSeqlens[] = {0, 5, 9};
  batten_batch_t batch = BATTEN_BATCH_INIT;
  batch.tokenIds = ids;
  batch.cuSeqlens = cuSeqlens;
  batch.tokenCount = 9;
  batch.seqCount = 2;

  /* Nothing is allocated here. The view stays valid until this executor's next run. */
  batten_lane_info_t lane;
  batten_output_view_t outputs[4] = {{0}};
  int result = 1;
  if (batten_bundle_get_lane(bundle, 0, &lane) || lane.outputCount > 4)
    fprintf(stderr, "%s: more outputs than this example has room for\n", argv[1]);
  else if (batten_run(executor, &batch, outputs, lane.outputCount, NULL, &error))
    failed("run", &error);
  else if (outputs[0].rows != 2)
    fprintf(stderr, "%s: its main lane does not give one row a sequence\n", argv[1]);
  else {
    const float *a = outputs[0].data;
    const float *b = (const float *)((const char *)outputs[0].data + outputs[0].strideBytes);
    double ab = 0, aa = 0, bb = 0;
    for (uint32_t i = 0; i < outputs[0].width; ++i) {
      ab += (double)a[i] * b[i];
      aa += (double)a[i] * a[i];
      bb += (double)b[i] * b[i];
    }
    printf("%.6f\n", ab / sqrt(aa * bb));
    result = 0;
  }

  batten_executor_destroy(executor);
  batten_bundle_release(bundle);
  return result;
}
