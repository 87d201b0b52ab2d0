// Writes bundles for the command line's tests that no model of the goldens gives: a lane that reads markers and sequence
// types, two targets on one machine, and pairs that differ in one known place. Machine code is that of TestKernels.c.
//
//   write_test_bundles DIR     DIR must exist; makes in it
//     decision.batten   targets "base" and "twin" (the same code), lanes "decide" and "encode"
//     changed.batten    the same but for one element of w1: step "widen" is the first that differs, in column 3
//     parted.batten     the same but for the label of step 3, "blend" for "mix"
//     renamed.batten    the same but for the name of the output "gathered", "collected"
#include "DecisionModel.h"

#include <cstdio>
#include <cstring>

using namespace batten::test;

namespace {

void write(BundleSpec spec, const std::string &path) {
  addTarget(spec, "twin", kArch, 0);
  writeFiles(serialize(std::move(spec)), path);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  write(decisionSpec(), folder + "/decision.batten");

  BundleSpec changed = decisionSpec();
  float *w1 = reinterpret_cast<float *>(changed.packs[1].data.data() + changed.packs[1].tensors[0].offset);
  w1[3] += 0.25f; // column 3 of the first input column: [panel 0][k 0][3]
  changed.selfTests.clear();
  write(std::move(changed), folder + "/changed.batten");

  BundleSpec parted = decisionSpec();
  for (PlanSpec &plan : parted.plans)
    plan.steps[3].label = plan.strings.add("blend");
  write(std::move(parted), folder + "/parted.batten");

  BundleSpec renamed = decisionSpec();
  renamed.outputs[0].name = renamed.strings.add("collected");
  for (PlanSpec &plan : renamed.plans)
    if (plan.lane == 0)
      plan.outputs[0].name = plan.strings.add("collected");
  write(std::move(renamed), folder + "/renamed.batten");
  return 0;
}
