/* The bytes of a bundle. Plain C, shared by the runtime and the compiler. Little endian, no pointers.
 *
 *   NAME.batten/manifest.bin                                       manifest (kind 1)
 *               packs/common.pack, packs/<layout>.pack             weights  (kind 2)
 *               plans/<target>/<lane>-<tokens>x<seqs>x<markers>.plan  plan  (kind 3)
 *               images/<target>.img                                kernels: an ELF shared object, not in this format
 *
 *   every file of a kind    bytes                      what
 *                           0..127                     header (batten_file_header_t)
 *                           128..128+32*sectionCount   section table (batten_section_t)
 *                           ...                        sections in ascending order, each 64-byte aligned, zeros between
 *
 *   manifest sections  STRINGS PRODUCER FILES TARGETS STAGES BUCKETS LANES OUTPUTS PLANS NOTES WORDS SELF_TESTS
 *   pack sections      STRINGS PACK TENSORS DATA (DATA last, 4096-byte aligned, to the end of the file)
 *   plan sections      STRINGS PLAN BUFFERS WEIGHTS KERNELS OPERANDS STEPS PLAN_OUTPUTS
 *
 * A section is {kind, recordBytes, offset, count}. A reader takes records at least as long as its own and ignores the
 * rest of each; it ignores sections of unknown kind; a section is there at most once. STRINGS and DATA have records of 1
 * byte, WORDS of 4. Strings are UTF-8 without a terminator, shared freely. Every reserved field is 0.
 *
 * header.digest is the SHA-256 of the file with the digest field taken as zeros; in a pack, of its head only: bytes
 * [0, offset of DATA). The digests in the manifest's FILES are of whole files as they are. */
#ifndef BATTEN_ABI_FORMAT_H
#define BATTEN_ABI_FORMAT_H

#include <stdint.h>

#define BATTEN_MAGIC "BATTEN\r\n" /* 8 bytes, no terminator */
#define BATTEN_FORMAT_MAJOR 1u
#define BATTEN_FORMAT_MINOR 0u
/** Needed-feature bits this format version knows. A file that needs another one is refused. */
#define BATTEN_KNOWN_FEATURES 0ull

enum batten_file_kind {
  BATTEN_FILE_MANIFEST = 1,
  BATTEN_FILE_PACK = 2,
  BATTEN_FILE_PLAN = 3,
  BATTEN_FILE_IMAGE = 4, /* only in FILES records */
};

enum batten_section_kind {
  BATTEN_SECTION_STRINGS = 1,
  BATTEN_SECTION_PRODUCER = 2, /* 1 batten_producer_t */
  BATTEN_SECTION_FILES = 3,    /* batten_file_t */
  BATTEN_SECTION_TARGETS = 4,  /* batten_target_t; a reader takes the supported one with the most feature bits */
  BATTEN_SECTION_STAGES = 5,   /* batten_stage_t */
  BATTEN_SECTION_BUCKETS = 6,  /* batten_bucket_t; a stage's buckets are contiguous, smallest first */
  BATTEN_SECTION_LANES = 7,    /* batten_lane_t */
  BATTEN_SECTION_OUTPUTS = 8,  /* batten_output_t; a lane's outputs are contiguous */
  BATTEN_SECTION_PLANS = 9,    /* batten_plan_ref_t: exactly one for each target, lane and bucket of the lane's stage */
  BATTEN_SECTION_NOTES = 10,   /* batten_note_t: facts for people: family, pooling, eps, defaults taken */
  BATTEN_SECTION_WORDS = 11,   /* uint32_t: inputs of self-tests */
  BATTEN_SECTION_SELF_TESTS = 12, /* batten_self_test_t */

  BATTEN_SECTION_PACK = 20,    /* 1 batten_pack_t */
  BATTEN_SECTION_TENSORS = 21, /* batten_tensor_t, ascending offsets */
  BATTEN_SECTION_DATA = 22,

  BATTEN_SECTION_PLAN = 30,         /* 1 batten_plan_t */
  BATTEN_SECTION_BUFFERS = 31,      /* batten_buffer_t */
  BATTEN_SECTION_WEIGHTS = 32,      /* batten_weight_t */
  BATTEN_SECTION_KERNELS = 33,      /* batten_kernel_t */
  BATTEN_SECTION_OPERANDS = 34,     /* batten_operand_t */
  BATTEN_SECTION_STEPS = 35,        /* batten_step_t, in order of execution */
  BATTEN_SECTION_PLAN_OUTPUTS = 36, /* batten_plan_output_t, in the lane's order */
};

enum batten_elem {
  BATTEN_ELEM_F32 = 1,
  BATTEN_ELEM_F16 = 2,
  BATTEN_ELEM_BF16 = 3,
  BATTEN_ELEM_I8 = 4,
};

/** How a tensor of a pack is laid out.
 *  table   row-major, rows*cols elements, dense; readable up to (rows-1)*cols + roundUp(cols, 16) elements
 *  vector  cols elements, rows is 1, zeros up to a multiple of 16
 *  panels  [ceil(rows/32)][cols][32]: element (n, k) of w [rows=n, cols=k] at ((n/32)*cols + k)*32 + n%32; zeros past rows
 *  dot_panels  for instructions that multiply and add g neighbours along k at once: [ceil(rows/32)] panels of
 *          [ceil(cols/g)][32][g], zeros past rows and cols. bf16: g = 2. i8: g = 4, the dots in groups of at most 96, group i
 *          of n has dots/n of them, one more for i < dots % n; behind each panel for each group 32 f32 scales and 32 f32
 *          sums of the elements of its columns: w[n, k] is about element * scale[n] of its group
 *  Every tensor starts at a multiple of 64 bytes and its bytes are rounded up to 64 with zeros. */
enum batten_weight_layout {
  BATTEN_LAYOUT_TABLE = 1,
  BATTEN_LAYOUT_VECTOR = 2,
  BATTEN_LAYOUT_PANELS = 3,
  BATTEN_LAYOUT_DOT_PANELS = 4,
};

/** Which pack a weight is in. */
enum batten_pack_index {
  BATTEN_PACK_COMMON = 0,
  BATTEN_PACK_PANELS = 1,
};

enum batten_arch {
  BATTEN_ARCH_X86_64 = 1,
  BATTEN_ARCH_AARCH64 = 2,
};

/** Largest pairWindow of a step: longer than any sequence. */
#define BATTEN_MAX_PAIR_WINDOW ((1u << 24) + 1)

/** CPU features that a target's code uses; x86-64. The operating system must have enabled the registers too. */
#define BATTEN_X86_SSE3 (1ull << 0)
#define BATTEN_X86_SSSE3 (1ull << 1)
#define BATTEN_X86_SSE4_1 (1ull << 2)
#define BATTEN_X86_SSE4_2 (1ull << 3)
#define BATTEN_X86_POPCNT (1ull << 4)
#define BATTEN_X86_CX16 (1ull << 5)
#define BATTEN_X86_LAHF (1ull << 6)
#define BATTEN_X86_AVX (1ull << 7)
#define BATTEN_X86_AVX2 (1ull << 8)
#define BATTEN_X86_BMI1 (1ull << 9)
#define BATTEN_X86_BMI2 (1ull << 10)
#define BATTEN_X86_F16C (1ull << 11)
#define BATTEN_X86_FMA (1ull << 12)
#define BATTEN_X86_LZCNT (1ull << 13)
#define BATTEN_X86_MOVBE (1ull << 14)
#define BATTEN_X86_AVX512F (1ull << 15)
#define BATTEN_X86_AVX512BW (1ull << 16)
#define BATTEN_X86_AVX512CD (1ull << 17)
#define BATTEN_X86_AVX512DQ (1ull << 18)
#define BATTEN_X86_AVX512VL (1ull << 19)
#define BATTEN_X86_AVX512_BF16 (1ull << 20)
#define BATTEN_X86_AVX512_VNNI (1ull << 21)
#define BATTEN_X86_V3 ((1ull << 15) - 1)
#define BATTEN_X86_V4 ((1ull << 20) - 1)

enum batten_operand_kind {
  BATTEN_OPERAND_BUFFER = 0,
  BATTEN_OPERAND_WEIGHT = 1,
};

/** What a step does to an operand. READWRITE is one operand in place: its address is passed as input and as output. */
enum batten_access {
  BATTEN_ACCESS_READ = 1,
  BATTEN_ACCESS_WRITE = 2,
  BATTEN_ACCESS_READWRITE = 3,
};

/** Which optional arrays a lane reads (batten_lane_t.inputs). token_ids and cu_seqlens are always read. */
#define BATTEN_INPUT_TOKEN_TYPES (1u << 0)
#define BATTEN_INPUT_MARKERS (1u << 1)
#define BATTEN_INPUT_SEQ_TYPES (1u << 2)

typedef struct batten_string {
  uint32_t offset; /* into STRINGS */
  uint32_t bytes;
} batten_string_t;

typedef struct batten_file_header {
  uint8_t magic[8];
  uint32_t kind; /* batten_file_kind */
  uint16_t major, minor;
  uint64_t neededFeatures;
  uint64_t fileBytes;
  uint32_t sectionCount;
  uint32_t headerBytes; /* 128 */
  uint8_t digest[32];
  uint8_t reserved[56];
} batten_file_header_t;

typedef struct batten_section {
  uint32_t kind; /* batten_section_kind */
  uint32_t recordBytes;
  uint64_t offset;
  uint64_t count;
  uint64_t reserved;
} batten_section_t;

/* ---- manifest ---- */

typedef struct batten_producer {
  batten_string_t name;    /* "batten" */
  batten_string_t version; /* of the compiler */
  batten_string_t llvm;    /* version of LLVM that made the code */
  uint32_t kernelAbi;      /* BATTEN_KERNEL_ABI_VERSION */
  uint32_t reserved;
} batten_producer_t;

typedef struct batten_file {
  batten_string_t path; /* relative, below the bundle: folder/name or folder/folder/name */
  uint32_t kind;        /* pack, plan or image */
  uint32_t reserved;
  uint64_t bytes;
  uint64_t headBytes; /* packs: offset of DATA, covered by headDigest; else 0 */
  uint8_t digest[32];
  uint8_t headDigest[32]; /* packs: SHA-256 of [0, headBytes); else zeros */
} batten_file_t;

typedef struct batten_target {
  batten_string_t name; /* "x86-64-v4" */
  uint32_t arch;        /* batten_arch */
  uint32_t weights;     /* batten_elem: storage */
  uint32_t math;        /* batten_elem */
  uint32_t image;       /* FILES index */
  uint32_t commonPack;  /* FILES index */
  uint32_t panelsPack;  /* FILES index */
  uint64_t features;    /* BATTEN_X86_* */
  uint64_t codeOffset;  /* of the image's one R+X segment in its file, a multiple of 4096 */
  uint64_t codeBytes;
} batten_target_t;

typedef struct batten_stage {
  batten_string_t name;
  uint32_t firstBucket, bucketCount;
} batten_stage_t;

typedef struct batten_bucket {
  uint32_t tokens, seqs, markers, reserved;
} batten_bucket_t;

typedef struct batten_lane {
  batten_string_t name;
  uint32_t stage;
  uint32_t firstOutput, outputCount;
  uint32_t inputs;       /* BATTEN_INPUT_* */
  uint32_t idCount;      /* rows of the real embedding table: ids are below it */
  uint32_t typeCount;    /* token types are below it; 0: not read */
  uint32_t seqTypeCount; /* 0: not read */
  uint32_t maxSeqTokens; /* longest sequence that the model's positions allow; 0: no limit */
} batten_lane_t;

typedef struct batten_output {
  batten_string_t name;
  uint32_t rowKind; /* batten_row_kind */
  uint32_t width;   /* columns */
  uint32_t elem;    /* batten_elem */
  uint32_t reserved;
} batten_output_t;

typedef struct batten_plan_ref {
  uint32_t lane, bucket, target, file; /* indices; bucket into BUCKETS */
} batten_plan_ref_t;

typedef struct batten_note {
  batten_string_t key, value;
} batten_note_t;

/** Inputs of a lane and the SHA-256 of its outputs: in the lane's order, row by row, width elements each, no pads. */
typedef struct batten_self_test {
  uint32_t lane;
  uint32_t tokens, seqs, markers;
  uint32_t ids, types, cuSeqlens;          /* first index into WORDS; types is UINT32_MAX where absent */
  uint32_t markerPos, cuMarkers, seqTypes; /* as types */
  uint8_t digest[32];
} batten_self_test_t;

/* ---- pack ---- */

typedef struct batten_pack {
  uint32_t pack;      /* batten_pack_index */
  uint32_t alignment; /* of every tensor: 64 */
  uint64_t dataOffset;
  uint64_t dataBytes;
} batten_pack_t;

typedef struct batten_tensor {
  batten_string_t name;
  uint32_t layout; /* batten_weight_layout */
  uint32_t elem;
  uint32_t rows, cols;
  uint64_t offset; /* in the file */
  uint64_t bytes;  /* a multiple of 64 */
} batten_tensor_t;

/* ---- plan ---- */

typedef struct batten_plan {
  batten_string_t lane, target;
  uint32_t kernelAbi;
  uint32_t tokens, seqs, markers; /* capacities: the bucket */
  uint64_t arenaBytes;
  uint64_t lowerBoundBytes; /* largest sum of live bytes at any step */
  uint64_t scratchBytes;    /* a worker; the largest of any step */
  uint8_t imageDigest[32];
  uint8_t commonDigest[32];
  uint8_t panelsDigest[32];
} batten_plan_t;

typedef struct batten_buffer {
  uint32_t rowKind;
  uint32_t width;
  uint32_t elem;
  uint32_t reserved;
  uint64_t strideBytes; /* a multiple of 64 */
  uint64_t offset;      /* in the arena, a multiple of 64; the buffer has capacity(rowKind) * strideBytes bytes */
} batten_buffer_t;

typedef struct batten_weight {
  batten_string_t name;
  uint32_t pack;   /* batten_pack_index */
  uint32_t layout; /* batten_weight_layout */
  uint32_t elem;
  uint32_t rows, cols;
  uint32_t reserved;
  uint64_t offset; /* in the pack's file */
  uint64_t bytes;
} batten_weight_t;

typedef struct batten_kernel {
  batten_string_t name;
  batten_string_t key; /* text of the kernel key's attributes */
  uint64_t entry;      /* in the image's file */
  uint64_t entryBytes;
  uint32_t domain;       /* batten_work_domain */
  uint32_t panels;       /* domain panels: 32-column panels; else 0 */
  uint32_t slabRows;     /* domain panels: most rows of a slab; else 0 */
  uint32_t heads;        /* domain tasks; else 0 */
  uint32_t operandCount; /* pointers that the kernel takes, output last */
  uint32_t mayOverwrite; /* 1: the last input may be the output's memory */
} batten_kernel_t;

typedef struct batten_operand {
  uint32_t kind;  /* batten_operand_kind */
  uint32_t index; /* into BUFFERS or WEIGHTS */
  uint32_t access;
  uint32_t reserved;
} batten_operand_t;

typedef struct batten_step {
  batten_string_t label;
  uint32_t kernel;
  uint32_t rowKind; /* rows that the domain counts; tokens for tasks */
  uint32_t firstOperand, operandCount;
  uint64_t scratchBytes; /* a worker */
  uint64_t flopsPerRow;
  uint64_t flopsPerPair; /* tasks: for each (query, key) of a sequence, all heads */
  uint64_t bytesPerRow;  /* activations read and written */
  uint32_t pairWindow;   /* tasks: a query sees keys less than this far away, itself at 1; 0: all of its sequence */
  uint32_t reserved;
} batten_step_t;

typedef struct batten_plan_output {
  batten_string_t name;
  uint32_t buffer;
  uint32_t reserved;
} batten_plan_output_t;

#ifdef __cplusplus
static_assert(sizeof(batten_file_header_t) == 128, "format");
static_assert(sizeof(batten_section_t) == 32, "format");
static_assert(sizeof(batten_producer_t) == 32, "format");
static_assert(sizeof(batten_file_t) == 96, "format");
static_assert(sizeof(batten_target_t) == 56, "format");
static_assert(sizeof(batten_stage_t) == 16, "format");
static_assert(sizeof(batten_bucket_t) == 16, "format");
static_assert(sizeof(batten_lane_t) == 40, "format");
static_assert(sizeof(batten_output_t) == 24, "format");
static_assert(sizeof(batten_plan_ref_t) == 16, "format");
static_assert(sizeof(batten_note_t) == 16, "format");
static_assert(sizeof(batten_self_test_t) == 72, "format");
static_assert(sizeof(batten_pack_t) == 24, "format");
static_assert(sizeof(batten_tensor_t) == 40, "format");
static_assert(sizeof(batten_plan_t) == 152, "format");
static_assert(sizeof(batten_buffer_t) == 32, "format");
static_assert(sizeof(batten_weight_t) == 48, "format");
static_assert(sizeof(batten_kernel_t) == 56, "format");
static_assert(sizeof(batten_operand_t) == 16, "format");
static_assert(sizeof(batten_step_t) == 64, "format");
static_assert(sizeof(batten_plan_output_t) == 16, "format");
#endif

#endif /* BATTEN_ABI_FORMAT_H */
