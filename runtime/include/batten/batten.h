/* Batten's runtime, C ABI. Needs libc only.
 *
 *   batten_bundle_open ─> batten_bundle_t     immutable, reference counted, shared between threads
 *   batten_pool_create ─> batten_pool_t       threads; optional, shared by executors
 *   batten_executor_create ─> batten_executor_t   mutable, one run at a time; owns all memory that a run needs
 *   batten_run, batten_run_lane               allocate nothing, take no lock
 *
 * Every call that can fail returns a batten_status_t and, where error is not NULL, fills *error. Nothing throws, aborts or
 * logs. Structs with a structBytes field grow at their end: set it to sizeof the struct that you compiled with (the
 * BATTEN_*_INIT macros do). */
#ifndef BATTEN_BATTEN_H
#define BATTEN_BATTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What the caller should do next. */
typedef enum batten_status {
  BATTEN_OK = 0,
  BATTEN_BAD_BATCH = 1,     /* mend the batch: the error names array, index, value and bound */
  BATTEN_NO_BUCKET = 2,     /* split the batch: it is larger than the stage's largest bucket */
  BATTEN_BUSY = 3,          /* the executor is running on another thread: use another executor */
  BATTEN_UNSUPPORTED = 4,   /* this machine or this build can't run it: use another bundle or machine */
  BATTEN_CORRUPT = 5,       /* the bundle is damaged, mixed up or unsafe: ship it again */
  BATTEN_VERSION = 6,       /* made for another version: compile again, or use the other runtime */
  BATTEN_DEVICE = 7,        /* a device failed */
  BATTEN_OUT_OF_MEMORY = 8, /* free memory */
  BATTEN_IO = 9,            /* a file could not be opened, read or mapped: the error names it and osError */
  BATTEN_BAD_ARGUMENT = 10, /* a call with an argument that no batch explains: mend the program */
} batten_status_t;

/** Details of the last failure; plain data that the caller owns. Fields that don't apply are 0 or empty. */
typedef struct batten_error {
  batten_status_t status;
  int32_t osError;   /* errno of the call that failed */
  uint64_t index;    /* element, record or byte that is at fault */
  uint64_t sequence; /* BAD_BATCH: sequence that index lies in */
  uint64_t found;    /* value found, bytes or count */
  uint64_t limit;    /* bound or value that was expected */
  char where[128];   /* array of the batch, or file of the bundle */
  char section[32];  /* section of the file, or "" */
  char message[512]; /* one line for people, lower case, no full stop */
} batten_error_t;

typedef struct batten_bundle batten_bundle_t;
typedef struct batten_pool batten_pool_t;
typedef struct batten_executor batten_executor_t;

/** "0.1.0" and the format and kernel ABI versions that this runtime reads. */
const char *batten_version(void);
uint32_t batten_format_major(void);
uint32_t batten_format_minor(void);
uint32_t batten_kernel_abi(void);
/** A status as a word ("bad batch"); never NULL. */
const char *batten_status_name(batten_status_t status);

/* ---- bundle ---- */

typedef enum batten_verify_level {
  BATTEN_VERIFY_STRUCTURE =
      0, /* the manifest, and of the target in use: digests of plans and image, heads of packs, every plan proved */
  BATTEN_VERIFY_FULL = 1, /* and all bytes of all files, and the plans of all targets */
} batten_verify_level_t;

typedef enum batten_load {
  BATTEN_LOAD_MAP = 0,  /* packs are mapped files */
  BATTEN_LOAD_READ = 1, /* packs are read into memory: no SIGBUS if a network mount fails */
} batten_load_t;

typedef struct batten_bundle_options {
  size_t structBytes;
  const uint8_t *manifestDigest; /* 32 bytes that the manifest's SHA-256 must equal, or NULL */
  batten_verify_level_t level;
  batten_load_t load;
  bool allowWritableByOthers; /* accept directories and files that group or others may write */
  bool mapImage;              /* map images from their files instead of sealed memory, so that perf names kernels */
  const char *target;         /* use this target only, e.g. "x86-64-v3"; NULL takes the best that runs here */
  bool inspectOnly; /* to ask and verify only, also where no target runs here: maps no code, makes no executor */
} batten_bundle_options_t;
#define BATTEN_BUNDLE_OPTIONS_INIT                                                                                     \
  {sizeof(batten_bundle_options_t), NULL, BATTEN_VERIFY_STRUCTURE, BATTEN_LOAD_MAP, false, false, NULL, false}

/** A file of a bundle in memory; path as in the bundle ("manifest.bin", "packs/common.pack"). data is 64-byte aligned and
 *  outlives the bundle (images are copied). */
typedef struct batten_blob {
  const char *path;
  const void *data;
  size_t bytes;
} batten_blob_t;

/** Opens the bundle directory at path. options may be NULL. The bundle has one reference; release it. */
batten_status_t batten_bundle_open(const char *path, const batten_bundle_options_t *options, batten_bundle_t **bundle,
                                   batten_error_t *error);
/** Opens a bundle from blobs in memory. load and allowWritableByOthers don't apply; mapImage is refused. */
batten_status_t batten_bundle_open_blobs(const batten_blob_t *blobs, size_t blobCount,
                                         const batten_bundle_options_t *options, batten_bundle_t **bundle,
                                         batten_error_t *error);
void batten_bundle_retain(batten_bundle_t *bundle);
void batten_bundle_release(batten_bundle_t *bundle); /* NULL is fine */

/** A string inside the bundle: not terminated, valid while the bundle is. */
typedef struct batten_text {
  const char *data;
  size_t bytes;
} batten_text_t;

typedef struct batten_bundle_info {
  uint32_t laneCount, stageCount, targetCount, fileCount, noteCount, selfTestCount;
  uint32_t target; /* index of the target in use */
  uint16_t formatMajor, formatMinor;
  uint32_t kernelAbi;
  batten_text_t producer, producerVersion, llvmVersion;
  uint8_t manifestDigest[32]; /* SHA-256 of manifest.bin */
} batten_bundle_info_t;

typedef struct batten_output_info {
  batten_text_t name;
  uint32_t rowKind; /* 0 tokens, 1 seqs, 2 markers, 3 one */
  uint32_t width;
  uint32_t elem; /* 1: f32 */
} batten_output_info_t;

typedef struct batten_lane_info {
  batten_text_t name;
  uint32_t stage;
  uint32_t bucketCount; /* of its stage */
  uint32_t outputCount;
  bool readsTypes, readsMarkers, readsSeqTypes;
  uint32_t idCount, typeCount, seqTypeCount; /* ids and types are below these */
  uint32_t maxSeqTokens;                     /* 0: no limit but the bucket */
} batten_lane_info_t;

typedef struct batten_bucket_info {
  uint32_t tokens, seqs, markers;
} batten_bucket_info_t;

typedef struct batten_target_info {
  batten_text_t name;
  uint32_t arch, weights, math;
  uint64_t features;
  bool supported; /* this machine has every feature */
} batten_target_info_t;

typedef struct batten_file_info {
  batten_text_t path;
  uint32_t kind; /* 2 pack, 3 plan, 4 image */
  uint64_t bytes;
  uint8_t digest[32];
} batten_file_info_t;

void batten_bundle_get_info(const batten_bundle_t *bundle, batten_bundle_info_t *info);
/* Indices out of range give BATTEN_BAD_ARGUMENT. */
batten_status_t batten_bundle_get_lane(const batten_bundle_t *bundle, uint32_t lane, batten_lane_info_t *info);
batten_status_t batten_bundle_get_output(const batten_bundle_t *bundle, uint32_t lane, uint32_t output,
                                         batten_output_info_t *info);
batten_status_t batten_bundle_get_bucket(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket,
                                         batten_bucket_info_t *info);
batten_status_t batten_bundle_get_stage_name(const batten_bundle_t *bundle, uint32_t stage, batten_text_t *name);
batten_status_t batten_bundle_get_target(const batten_bundle_t *bundle, uint32_t target, batten_target_info_t *info);
batten_status_t batten_bundle_get_file(const batten_bundle_t *bundle, uint32_t file, batten_file_info_t *info);
batten_status_t batten_bundle_get_note(const batten_bundle_t *bundle, uint32_t note, batten_text_t *key,
                                       batten_text_t *value);
/** Index of the lane of that name; BATTEN_BAD_ARGUMENT where there is none. */
batten_status_t batten_bundle_find_lane(const batten_bundle_t *bundle, const char *name, uint32_t *lane,
                                        batten_error_t *error);
/** Hashes every byte of every file against the manifest, as BATTEN_VERIFY_FULL does. */
batten_status_t batten_bundle_verify_full(const batten_bundle_t *bundle, batten_error_t *error);

/** A plan of the target in use; bucket counts within the lane's stage. */
typedef struct batten_plan_info {
  uint32_t stepCount, bufferCount, weightCount, kernelCount;
  uint64_t arenaBytes, lowerBoundBytes, scratchBytes;
} batten_plan_info_t;

typedef struct batten_step_info {
  batten_text_t label, kernel, key;
  uint32_t domain; /* 0 panels, 1 rows, 2 tasks, 3 one */
  uint32_t rowKind;
  uint32_t operandCount;
  uint64_t flopsPerRow, flopsPerPair, bytesPerRow, weightBytes, scratchBytes;
  uint32_t pairWindow; /* a (query, key) pair counts where they are less than this far apart; 0: all of a sequence */
} batten_step_info_t;

typedef struct batten_operand_info {
  bool isWeight;
  uint32_t access;    /* 1 read, 2 write, 3 in place */
  batten_text_t name; /* weights */
  uint32_t buffer;    /* buffers: index */
  uint32_t rowKind, width, elem;
  uint64_t offset, bytes, strideBytes;
} batten_operand_info_t;

batten_status_t batten_bundle_get_plan(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket,
                                       batten_plan_info_t *info);
batten_status_t batten_bundle_get_step(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket, uint32_t step,
                                       batten_step_info_t *info);
batten_status_t batten_bundle_get_operand(const batten_bundle_t *bundle, uint32_t lane, uint32_t bucket, uint32_t step,
                                          uint32_t operand, batten_operand_info_t *info);

/* ---- pool ---- */

typedef struct batten_pool_options {
  size_t structBytes;
  uint32_t threads;          /* with the caller's; 0: min(CPUs allowed, ceil(cgroup quota)) */
  uint32_t spinMicroseconds; /* how long an idle worker spins before it sleeps; UINT32_MAX: the default, 50, or 0 where
                                threads is larger than the CPUs allowed */
} batten_pool_options_t;
#define BATTEN_POOL_OPTIONS_INIT {sizeof(batten_pool_options_t), 0, UINT32_MAX}

/** Starts threads - 1 workers. A pool serves one run at a time; a second one goes on inline on its own thread. */
batten_status_t batten_pool_create(const batten_pool_options_t *options, batten_pool_t **pool, batten_error_t *error);
void batten_pool_retain(batten_pool_t *pool);
void batten_pool_release(batten_pool_t *pool); /* the last reference joins the workers */
uint32_t batten_pool_threads(const batten_pool_t *pool);
/** min(CPUs in the affinity mask, ceil(cgroup quota)), at least 1. */
uint32_t batten_default_threads(void);

/* ---- executor ---- */

/** A packed batch. Arrays are the caller's and only read during the call.
 *
 *  Shapes: tokenIds, tokenTypes [tokenCount]; cuSeqlens, cuMarkers [seqCount + 1]; markers [markerCount]; seqTypes [seqCount].
 *  tokenTypes, seqTypes may be NULL: 0 everywhere. markers and cuMarkers may be NULL where markerCount is 0.
 *  Units:  markers are positions inside their own sequence. Values are signed as tokenizers give them; negative ones are
 *          refused like those past the bound. */
typedef struct batten_batch {
  size_t structBytes;
  const int32_t *tokenIds;
  const int32_t *tokenTypes;
  const int32_t *cuSeqlens;
  const int32_t *markers;
  const int32_t *cuMarkers;
  const int32_t *seqTypes;
  uint32_t tokenCount, seqCount, markerCount;
} batten_batch_t;
#define BATTEN_BATCH_INIT {sizeof(batten_batch_t), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0}

/** An output of a run.
 *
 *  In:  where copyTo is not NULL, rows*width elements are copied there, dense, and data points to it; copyBytes is its size.
 *  Out: element (r, c) is at data + r*strideBytes + c*4 for f32. Without copyTo data is a view, valid until the executor's
 *       next run. */
typedef struct batten_output_view {
  void *copyTo;
  size_t copyBytes;
  const void *data;
  uint32_t rows, width;
  size_t strideBytes;
} batten_output_view_t;

typedef struct batten_executor_options {
  size_t structBytes;
  batten_pool_t *pool; /* retained; NULL: the calling thread only */
  bool profile;        /* time each step; read with batten_executor_get_step_time */
} batten_executor_options_t;
#define BATTEN_EXECUTOR_OPTIONS_INIT {sizeof(batten_executor_options_t), NULL, false}

/** Allocates and touches all memory that runs of any lane need. Retains the bundle.
 *  Errors: OUT_OF_MEMORY; BAD_ARGUMENT where the bundle was opened with inspectOnly. */
batten_status_t batten_executor_create(batten_bundle_t *bundle, const batten_executor_options_t *options,
                                       batten_executor_t **executor, batten_error_t *error);
void batten_executor_destroy(batten_executor_t *executor); /* NULL is fine; not during a run */

/** Lane 0. outputs has the lane's outputCount entries, in the lane's order; NULL with outputCount 0 skips them.
 *  *bucket, where not NULL, gets the index of the bucket used, within the lane's stage.
 *  Errors: BAD_BATCH, NO_BUCKET, BUSY, BAD_ARGUMENT. After an error the executor is as before and can run again, and views
 *  on the outputs of the run before stay valid. Counts are looked at first: a batch that no bucket holds is NO_BUCKET
 *  whatever its values are. */
batten_status_t batten_run(batten_executor_t *executor, const batten_batch_t *batch, batten_output_view_t *outputs,
                           uint32_t outputCount, uint32_t *bucket, batten_error_t *error);
batten_status_t batten_run_lane(batten_executor_t *executor, uint32_t lane, const batten_batch_t *batch,
                                batten_output_view_t *outputs, uint32_t outputCount, uint32_t *bucket,
                                batten_error_t *error);
/** Runs in that bucket of the lane's stage, which must hold the batch; else NO_BUCKET. For tests and benchmarks. */
batten_status_t batten_run_in_bucket(batten_executor_t *executor, uint32_t lane, uint32_t bucket,
                                     const batten_batch_t *batch, batten_output_view_t *outputs, uint32_t outputCount,
                                     batten_error_t *error);
/** Checks a batch wholly and tells its bucket, running nothing. What batten_bundle_get_bucket says of that bucket, less the
 *  batch's counts, is its slack. */
batten_status_t batten_check_batch(const batten_executor_t *executor, uint32_t lane, const batten_batch_t *batch,
                                   uint32_t *bucket, batten_error_t *error);

/** Bytes; "resident" is asked of the system at the call. */
typedef struct batten_memory {
  uint64_t weightsMapped, weightsResident;
  uint64_t imageMapped, imageResident;
  uint64_t planTables;                  /* plans and operand tables */
  uint64_t arena, batchTables, scratch; /* the executor's own, resident from creation on */
} batten_memory_t;
batten_status_t batten_executor_get_memory(const batten_executor_t *executor, batten_memory_t *memory);

/** Faults in the weights and code of a plan, so that its first run is as fast as the next. */
batten_status_t batten_executor_prepare(batten_executor_t *executor, uint32_t lane, uint32_t bucket,
                                        batten_error_t *error);
/** Profiling on or off; costs nothing when off. Times restart at 0. */
batten_status_t batten_executor_set_profile(batten_executor_t *executor, bool on);
/** Nanoseconds and runs of a step since profiling was switched on. */
batten_status_t batten_executor_get_step_time(const batten_executor_t *executor, uint32_t lane, uint32_t bucket,
                                              uint32_t step, uint64_t *nanoseconds, uint64_t *runs);

/** Told after each step of a run, on the thread that called it: the step's number in the plan, the row kind and a view of
 *  what it wrote, valid during the call, which is made in the floating point state of a run (denormals flushed). Steps
 *  without rows to work on are skipped. */
typedef void batten_trace_fn(void *user, uint32_t step, uint32_t rowKind, const batten_output_view_t *output);
/** Traces runs from now on; NULL stops it. A traced run waits after each step; one that isn't pays nothing. BUSY during a
 *  run. */
batten_status_t batten_executor_set_trace(batten_executor_t *executor, batten_trace_fn *trace, void *user);

typedef struct batten_self_test_result {
  uint32_t lane;
  bool passed;
  uint8_t expected[32], found[32];
} batten_self_test_result_t;
/** Runs a self-test of the bundle and compares the digest of its outputs. BATTEN_CORRUPT where it differs. */
batten_status_t batten_executor_self_test(batten_executor_t *executor, uint32_t index,
                                          batten_self_test_result_t *result, batten_error_t *error);

/** SHA-256 of bytes into digest[32]. */
void batten_sha256(const void *data, size_t bytes, uint8_t *digest);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* BATTEN_BATTEN_H */
