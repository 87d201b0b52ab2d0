// One emitter an op. Each emits the body of one kernel between openKernel and closeKernel.
#ifndef BATTEN_COMPILER_KERNELS_EMITTERS_H
#define BATTEN_COMPILER_KERNELS_EMITTERS_H

#include "compiler/kernels/EmitterContext.h"
#include "compiler/kernels/KernelKey.h"

namespace batten {

void emitLinear(EmitterContext &e, const KernelKey &key);
void emitAttention(EmitterContext &e, const KernelKey &key);
void emitEmbed(EmitterContext &e, const KernelKey &key);
void emitPool(EmitterContext &e, const KernelKey &key);
void emitLayerNorm(EmitterContext &e, const KernelKey &key);
void emitRmsNorm(EmitterContext &e, const KernelKey &key);
void emitL2Normalize(EmitterContext &e, const KernelKey &key);
void emitActivationRows(EmitterContext &e, const KernelKey &key);
void emitAdd(EmitterContext &e, const KernelKey &key);
void emitSlice(EmitterContext &e, const KernelKey &key);
void emitConcatCols(EmitterContext &e, const KernelKey &key);
void emitSoftmax(EmitterContext &e, const KernelKey &key);
void emitGated(EmitterContext &e, const KernelKey &key);
void emitRope(EmitterContext &e, const KernelKey &key);
void emitAddType(EmitterContext &e, const KernelKey &key);
void emitGatherMarkers(EmitterContext &e, const KernelKey &key);
void emitDecisionFeatures(EmitterContext &e, const KernelKey &key);

} // namespace batten

#endif // BATTEN_COMPILER_KERNELS_EMITTERS_H
