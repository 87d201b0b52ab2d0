/* Kernels of a tiny encoder for the runtime's tests, built as a freestanding shared object by the C compiler: no code
 * generator is needed. They keep the kernel ABI, and add in the order that TestModel.cpp's plain loops do, so that results
 * can be compared bit by bit. Widths are 20 and 40: no multiple of 16. */
#include "batten/kernel.h"

enum { kWidth = 20, kInner = 40, kHeads = 2, kSlabRows = 8, kStride20 = 32, kStride40 = 48 };

typedef struct Slab {
  uint32_t first, last;
} slab_t;

static slab_t slabOf(uint32_t rows, uint32_t count, uint32_t index) {
  uint32_t each = rows / count, more = rows % count;
  slab_t slab;
  slab.first = index * each + (index < more ? index : more);
  slab.last = slab.first + each + (index < more);
  return slab;
}

/* ptr: words, types, positions, out */
void embed_20_wtp(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *words = args->ptr[0], *types = args->ptr[1], *positions = args->ptr[2];
  float *out = args->ptr[3];
  const batten_kernel_batch_t *batch = args->batch;
  (void)worker;
  for (uint32_t r = first; r < last; ++r)
    for (uint32_t c = 0; c < kWidth; ++c)
      out[(uint64_t)r * kStride20 + c] = words[(uint64_t)batch->ids[r] * kWidth + c] +
                                         types[(batch->types ? batch->types[r] : 0) * kWidth + c] +
                                         positions[batch->position[r] * kWidth + c];
}

/* ptr: positions, out */
void embed_20_p(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *positions = args->ptr[0];
  float *out = args->ptr[1];
  (void)worker;
  for (uint32_t r = first; r < last; ++r)
    for (uint32_t c = 0; c < kWidth; ++c)
      out[(uint64_t)r * kStride20 + c] = positions[args->batch->position[r] * kWidth + c];
}

static void linear(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t k, uint32_t n,
                   uint32_t xStride, uint32_t outStride, const float *residual, float *out) {
  const float *x = args->ptr[0], *w = args->ptr[1], *bias = args->ptr[2];
  const uint32_t rows = *args->rows, panels = (n + 31) / 32, slabs = (rows + kSlabRows - 1) / kSlabRows;
  for (uint32_t unit = first; unit < last; ++unit) {
    const uint32_t panel = unit % panels;
    const slab_t slab = slabOf(rows, slabs, unit / panels);
    for (uint32_t r = slab.first; r < slab.last; ++r)
      for (uint32_t c = panel * 32; c < n && c < panel * 32 + 32; ++c) {
        float sum = 0;
        for (uint32_t i = 0; i < k; ++i)
          sum += x[(uint64_t)r * xStride + i] * w[((uint64_t)panel * k + i) * 32 + c % 32];
        sum += bias[c];
        if (residual)
          sum += residual[(uint64_t)r * outStride + c];
        out[(uint64_t)r * outStride + c] = sum;
      }
  }
}

/* ptr: x, w, bias, out */
void linear_20x40_bias(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  (void)worker;
  linear(args, first, last, kWidth, kInner, kStride20, kStride40, 0, args->ptr[3]);
}

/* ptr: x, w, bias, residual, out */
void linear_40x20_bias_res(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  (void)worker;
  linear(args, first, last, kInner, kWidth, kStride40, kStride20, args->ptr[3], args->ptr[4]);
}

/* ptr: x, out. Attention's shape with a softmax that needs no exponential: weights 1 / (1 + |q - k|^2), kept in scratch. */
void mix_2x20(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *x = args->ptr[0];
  float *out = args->ptr[1];
  float *weights = (float *)(args->scratch + worker * args->scratchBytes);
  const batten_kernel_batch_t *batch = args->batch;
  uint32_t s = 0;
  for (uint32_t unit = first; unit < last; ++unit) {
    while (unit >= kHeads * batch->taskStart[s + 1])
      ++s;
    const uint32_t start = batch->cuSeqlens[s], length = batch->cuSeqlens[s + 1] - start;
    const uint32_t blocks = batch->taskStart[s + 1] - batch->taskStart[s];
    const uint32_t inside = unit - kHeads * batch->taskStart[s], head = inside / blocks;
    const slab_t block = slabOf(length, blocks, inside % blocks);
    for (uint32_t q = block.first; q < block.last; ++q) {
      const float *query = x + (uint64_t)(start + q) * kStride40 + head * kWidth;
      float *row = out + (uint64_t)(start + q) * kStride40 + head * kWidth;
      float total = 0;
      for (uint32_t key = 0; key < length; ++key) {
        const float *other = x + (uint64_t)(start + key) * kStride40 + head * kWidth;
        float distance = 1;
        for (uint32_t c = 0; c < kWidth; ++c)
          distance += (query[c] - other[c]) * (query[c] - other[c]);
        weights[key] = 1 / distance;
        total += weights[key];
      }
      for (uint32_t c = 0; c < kWidth; ++c) {
        float sum = 0;
        for (uint32_t key = 0; key < length; ++key)
          sum += weights[key] * x[(uint64_t)(start + key) * kStride40 + head * kWidth + c];
        row[c] = sum / total;
      }
    }
  }
}

/* ptr: gamma, beta, x, out */
void layer_norm_20(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *gamma = args->ptr[0], *beta = args->ptr[1], *x = args->ptr[2];
  float *out = args->ptr[3];
  (void)worker;
  for (uint32_t r = first; r < last; ++r) {
    const float *row = x + (uint64_t)r * kStride20;
    float mean = 0, variance = 0;
    for (uint32_t c = 0; c < kWidth; ++c)
      mean += row[c];
    mean /= kWidth;
    for (uint32_t c = 0; c < kWidth; ++c)
      variance += (row[c] - mean) * (row[c] - mean);
    variance = variance / kWidth + 1e-5f;
    for (uint32_t c = 0; c < kWidth; ++c)
      out[(uint64_t)r * kStride20 + c] = (row[c] - mean) / variance * gamma[c] + beta[c];
  }
}

/* ptr: a, b, out */
void add_20(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *a = args->ptr[0], *b = args->ptr[1];
  float *out = args->ptr[2];
  (void)worker;
  for (uint32_t r = first; r < last; ++r)
    for (uint32_t c = 0; c < kWidth; ++c)
      out[(uint64_t)r * kStride20 + c] = a[(uint64_t)r * kStride20 + c] + b[(uint64_t)r * kStride20 + c];
}

/* ptr: x, out. An empty sequence gives a zero row. */
void pool_mean_20(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *x = args->ptr[0];
  float *out = args->ptr[1];
  (void)worker;
  for (uint32_t s = first; s < last; ++s) {
    const uint32_t start = args->batch->cuSeqlens[s], end = args->batch->cuSeqlens[s + 1];
    for (uint32_t c = 0; c < kWidth; ++c) {
      float sum = 0;
      for (uint32_t r = start; r < end; ++r)
        sum += x[(uint64_t)r * kStride20 + c];
      out[(uint64_t)s * kStride20 + c] = end > start ? sum / (float)(end - start) : 0;
    }
  }
}

/* ptr: x, out. The token row of each marker. */
void gather_markers_20(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *x = args->ptr[0];
  float *out = args->ptr[1];
  (void)worker;
  for (uint32_t m = first; m < last; ++m)
    for (uint32_t c = 0; c < kWidth; ++c)
      out[(uint64_t)m * kStride20 + c] = x[(uint64_t)args->batch->markerRow[m] * kStride20 + c];
}

/* ptr: table, x, gathered, out. Of each sequence: the row of its type, its first token's row, its markers' rows, added. */
void decide_20(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker) {
  const float *table = args->ptr[0], *x = args->ptr[1], *gathered = args->ptr[2];
  float *out = args->ptr[3];
  const batten_kernel_batch_t *batch = args->batch;
  (void)worker;
  for (uint32_t s = first; s < last; ++s)
    for (uint32_t c = 0; c < kWidth; ++c) {
      float sum = table[batch->seqTypes[s] * kWidth + c];
      if (batch->cuSeqlens[s + 1] > batch->cuSeqlens[s])
        sum += x[(uint64_t)batch->cuSeqlens[s] * kStride20 + c];
      for (uint32_t m = batch->cuMarkers[s]; m < batch->cuMarkers[s + 1]; ++m)
        sum += gathered[(uint64_t)m * kStride20 + c];
      out[(uint64_t)s * kStride20 + c] = sum;
    }
}
