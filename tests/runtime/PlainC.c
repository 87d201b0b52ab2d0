/* batten.h in plain C, linked by the C compiler alone: opens what is no bundle and must be told so. */
#include "batten/batten.h"
#include "batten/format.h"
#include "batten/kernel.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  batten_bundle_options_t options = BATTEN_BUNDLE_OPTIONS_INIT;
  batten_pool_options_t poolOptions = BATTEN_POOL_OPTIONS_INIT;
  batten_bundle_t *bundle = NULL;
  batten_pool_t *pool = NULL;
  batten_error_t error;
  if (batten_bundle_open("/nonexistent.batten", &options, &bundle, &error) != BATTEN_IO || bundle != NULL)
    return 1;
  printf("%s: %s\n", batten_status_name(error.status), error.message);
  poolOptions.threads = 2;
  if (batten_pool_create(&poolOptions, &pool, &error) != BATTEN_OK || batten_pool_threads(pool) != 2)
    return 2;
  batten_pool_release(pool);
  return strlen(batten_version()) == 0;
}
