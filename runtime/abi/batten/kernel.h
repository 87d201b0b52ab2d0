/* The kernel ABI: how the runtime calls generated machine code. Plain C, shared by the runtime and the compiler.
 *
 * A kernel is a pure function of its operands and of the batch. It returns nothing and cannot fail. It reads rows below
 * *rows and writes its own rows and their pads (columns up to the width rounded up to 16), nothing else. It calls
 * nothing: no libc, no libm, no allocation, no system call, no thread-local state. Stack frames stay under 4 KB.
 * Whatever depends on the number of rows is branched inside the kernel on the real count, never on a bucket.
 *
 * Rules that fix the bits of a row (DESIGN.md, numerics), the same on every CPU target:
 *   linear      acc = 0; acc = fma(x[k], w[k], acc) for k ascending; then + bias; then activation; then + residual
 *               weights of f16 or bf16 are widened first, which is exact
 *   linear, math bf16   x rounded to bf16 (nearest even); acc += x[k] w[k] + x[k+1] w[k+1] for even k ascending, as
 *               vdpbf16ps does it; then as linear
 *   linear, math i8     k in the groups of the weight's dots (format.h). In each, a row of x has lo = min(0, least x), hi =
 *               max(0, largest x), d = hi - lo, s = d * (1/255), f = 255 / d, z = -lo * f and q = x * f + z, both rounded
 *               to nearest even and within 0 .. 255; an exact sum t of (q[k] - z) w[k]; acc = fma(t, s * scale[n], acc) for
 *               groups ascending, from 0; then as linear. A row that holds a NaN or an infinity gives NaN in all its columns,
 *               a group whose d is less than 2^-110 counts as zeros
 *   reductions  over a width or over keys: 16 virtual lanes, lane l takes elements l, l+16, l+32.. in order; then one
 *               tree: lane i += lane i+8 (i < 8), += i+4, += i+2, += i+1. Lanes past the end add +0 (max: -inf)
 *   layer norm  two passes: mean, then the sum of fma(d, d, .) of d = x - mean; y = fma(d * (1/sqrt(var + eps)), w, b)
 *   rms norm    one pass: the sum of fma(x, x, .); y = (x * (1/sqrt(sum / width + eps))) * w
 *   rope        lo' = fma(lo, cos, -(hi * sin)); hi' = fma(hi, cos, lo * sin)
 *   gated       act(a) * b, each as it is alone
 *   softmax     e = exp(x - max), y = e / sum of e
 *   attention   s = chain over the head width of fma(q, k, s), times scale * log2(e); key blocks of 512 counted from the
 *               sequence's start; p = exp2(s - max); sum of p in 16 virtual lanes; o = chain over keys of fma(p, v, o);
 *               a later block rescales o and the lanes by exp2(old max - new max); y = o * (1 / sum).
 *               With a window a row goes through the same over its own keys alone, and the blocks that hold any: still
 *               counted from the sequence's start, as are lanes (a key's number mod 16; the others add +0). What only
 *               other rows see never enters, be it NaN
 *   decision features  over the sequence's own logits: e, sum and p = e / sum as in softmax; largest 1 / sum; second: 1 if
 *               two e are 1, or else the largest other e, / sum; entropy: -(the sum of fma(p, log(max(1e-9, p)), .)) / log(k)
 *   max(a, b)   a > b ? a : b
 *   exp2(x)     0 below -126; exp(x) is 0 below -87.3
 */
#ifndef BATTEN_ABI_KERNEL_H
#define BATTEN_ABI_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Version of this header. A plan made for another one is refused. */
#define BATTEN_KERNEL_ABI_VERSION 1u

/** What a value has one row per; also the index into batten_kernel_batch_t.rows. */
enum batten_row_kind {
  BATTEN_ROWS_TOKENS = 0,
  BATTEN_ROWS_SEQS = 1,
  BATTEN_ROWS_MARKERS = 2,
  BATTEN_ROWS_ONE = 3,
};

/** How a step's work is numbered. [first, last) of a kernel call are unit numbers of its domain.
 *
 *  panels  rows are cut into slabs = ceil(rows / slabRows) balanced slabs (slab i has rows/slabs rows, one more for
 *          i < rows % slabs); unit = slab * panels + panel, a panel being 32 output columns
 *  rows    unit = row
 *  tasks   attention. Sequence s has n = taskStart[s+1] - taskStart[s] = ceil(length / BATTEN_TASK_ROWS) query blocks a
 *          head, counted from its own start, balanced as slabs are; unit = heads * taskStart[s] + head * n + block
 *  one     a single unit, 0
 */
enum batten_work_domain {
  BATTEN_DOMAIN_PANELS = 0,
  BATTEN_DOMAIN_ROWS = 1,
  BATTEN_DOMAIN_TASKS = 2,
  BATTEN_DOMAIN_ONE = 3,
};

/** Columns of a weight panel, on every CPU target. Panels are stored [ceil(n/32)][k][32], columns past n are zero. */
#define BATTEN_PANEL_COLS 32u
/** Virtual lanes of a reduction, and the elements that widths are padded to. */
#define BATTEN_LANES 16u
/** Most query rows of an attention task. */
#define BATTEN_TASK_ROWS 64u
/** Keys of an attention block, counted from the sequence's start. */
#define BATTEN_KEY_BLOCK 512u
/** Most pointers that a kernel takes. */
#define BATTEN_KERNEL_OPERANDS 8u
/** Alignment in bytes of every operand, stride and scratch block. */
#define BATTEN_ALIGNMENT 64u

/** The batch of a run: one an executor, filled by the batch check, read by kernels.
 *
 *  Shapes: ids [tokens]; types [tokens] or NULL, which means 0 everywhere; cuSeqlens, taskStart [seqs+1];
 *          cuMarkers [seqs+1] and seqTypes [seqs], never NULL in a lane that reads them; position, seqOf [tokens];
 *          markerRow [markers].
 *  Units:  position counts tokens from the sequence's start; markerRow is a token row of the batch. */
typedef struct batten_kernel_batch {
  uint32_t rows[4]; /* tokens, seqs, markers, 1 */
  const uint32_t *ids;
  const uint32_t *types;
  const uint32_t *cuSeqlens;
  const uint32_t *cuMarkers;
  const uint32_t *seqTypes;
  const uint32_t *position;
  const uint32_t *seqOf;
  const uint32_t *markerRow;
  const uint32_t *taskStart;
} batten_kernel_batch_t;

/** The operands of a step: one a step and plan, resolved when the executor is made, constant afterwards.
 *
 *  ptr holds the kernel's signature in order: inputs, the one that may be overwritten last among them, then the output.
 *  A step in place passes that input's address twice. scratch of worker w starts at scratch + w * scratchBytes. */
typedef struct batten_kernel_args {
  void *ptr[BATTEN_KERNEL_OPERANDS];
  const batten_kernel_batch_t *batch;
  const uint32_t *rows; /* -> batch->rows[kind] */
  const void *next;     /* first weights of the next step: a prefetch hint, may be NULL */
  uint64_t nextBytes;
  uint64_t scratchBytes;
  uint8_t *scratch;
} batten_kernel_args_t;

/** Does units [first, last) of the step's domain; first < last. worker names the scratch block. */
typedef void batten_kernel_fn(const batten_kernel_args_t *args, uint32_t first, uint32_t last, uint32_t worker);

#ifdef __cplusplus
} /* extern "C" */
static_assert(sizeof(batten_kernel_batch_t) == 88, "kernel ABI");
static_assert(sizeof(batten_kernel_args_t) == 112, "kernel ABI");
#endif

#endif /* BATTEN_ABI_KERNEL_H */
