// RUN: batten-opt %s --fuse | FileCheck %s
// RUN: batten-opt %s --fuse=report=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// REPORT: remark: activations fused: 2, residuals fused: 4, adds of embeddings fused: 5

#tokens = #batten.rows<tokens>
!x = tensor<?x8xf32, #tokens>
!w = tensor<8x8xf32>
!t = tensor<20x8xf32>
module {
  batten.weight @t from "t" : !t
  batten.weight @w from "w" : !w
  batten.weight @b from "b" : tensor<8xf32>

  // The activation goes into the linear, bias kept.
  // CHECK-LABEL: batten.graph @activation
  // CHECK: batten.linear %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<8xf32>) act gelu_erf :
  // CHECK-NOT: batten.activation
  batten.graph @activation(%ids: !batten.ids) -> (x: !x) {
    %t = batten.param @t : !t
    %w = batten.param @w : !w
    %b = batten.param @b : tensor<8xf32>
    %x = batten.embed %ids, %t : !t
    %0 = batten.linear %x, %w bias(%b : tensor<8xf32>) : !x, !w
    %1 = batten.activation gelu_erf %0 : !x
    batten.return %1 : !x
  }

  // Left alone: no linear, another use, an activation already, a residual before the activation.
  // CHECK-LABEL: batten.graph @activation_declined
  // CHECK-COUNT-4: batten.activation
  batten.graph @activation_declined(%ids: !batten.ids) -> (x: !x, y: !x, z: !x) {
    %t = batten.param @t : !t
    %w = batten.param @w : !w
    %x = batten.embed %ids, %t : !t
    %0 = batten.activation relu %x : !x
    %1 = batten.linear %0, %w : !x, !w
    %2 = batten.activation relu %1 : !x
    %3 = batten.linear %2, %w act tanh : !x, !w
    %4 = batten.activation relu %3 : !x
    %5 = batten.linear %4, %w residual(%x : !x) : !x, !w
    %6 = batten.activation relu %5 : !x
    batten.return %1, %4, %6 : !x, !x, !x
  }

  // The residual goes into the linear, whichever side of the add it is on, after an activation too.
  // CHECK-LABEL: batten.graph @residual
  // CHECK: %[[X:.*]] = batten.embed
  // CHECK: %[[A:.*]] = batten.linear %[[X]], %{{.*}} residual(%[[X]] : tensor<?x8xf32, #tokens>)
  // CHECK: %[[B:.*]] = batten.linear %[[A]], %{{.*}} residual(%[[A]] : tensor<?x8xf32, #tokens>)
  // CHECK: batten.linear %[[B]], %{{.*}} act relu residual(%[[B]] : tensor<?x8xf32, #tokens>)
  // CHECK-NOT: batten.add
  batten.graph @residual(%ids: !batten.ids) -> (x: !x) {
    %t = batten.param @t : !t
    %w = batten.param @w : !w
    %x = batten.embed %ids, %t : !t
    %0 = batten.linear %x, %w : !x, !w
    %1 = batten.add %0, %x : !x
    %2 = batten.linear %1, %w : !x, !w
    %3 = batten.add %1, %2 : !x
    %4 = batten.linear %3, %w : !x, !w
    %5 = batten.activation relu %4 : !x
    %6 = batten.add %5, %3 : !x
    batten.return %6 : !x
  }

  // Of two linears the later one takes the other as its residual.
  // CHECK-LABEL: batten.graph @residual_of_two
  // CHECK: %[[W:.*]] = batten.param @w
  // CHECK: %[[A:.*]] = batten.linear %[[X:.*]], %[[W]] :
  // CHECK: batten.linear %[[X]], %[[W]] residual(%[[A]] : tensor<?x8xf32, #tokens>)
  batten.graph @residual_of_two(%ids: !batten.ids) -> (x: !x) {
    %t = batten.param @t : !t
    %w = batten.param @w : !w
    %x = batten.embed %ids, %t : !t
    %0 = batten.linear %x, %w : !x, !w
    %1 = batten.linear %x, %w : !x, !w
    %2 = batten.add %1, %0 : !x
    batten.return %2 : !x
  }

  // Left alone: a linear with another use, a linear with a residual, one value twice.
  // CHECK-LABEL: batten.graph @residual_declined
  // CHECK-COUNT-3: batten.add
  batten.graph @residual_declined(%ids: !batten.ids) -> (x: !x, y: !x) {
    %t = batten.param @t : !t
    %w = batten.param @w : !w
    %x = batten.embed %ids, %t : !t
    %0 = batten.linear %x, %w : !x, !w
    %1 = batten.add %0, %x : !x
    %2 = batten.linear %1, %w residual(%x : !x) : !x, !w
    %3 = batten.add %2, %x : !x
    %4 = batten.linear %3, %w : !x, !w
    %5 = batten.add %4, %4 : !x
    batten.return %0, %5 : !x, !x
  }

  // Word + type + position become one op; the last add gives the name.
  // CHECK-LABEL: batten.graph @embed
  // CHECK-SAME: %[[IDS:[^:]*]]: !batten.ids, %[[TYPES:[^:]*]]: !batten.types, %[[SEG:[^:]*]]: !batten.segments
  // CHECK: batten.embed_sum words(%[[IDS]], %[[T:.*]] : tensor<20x8xf32>) types(%[[TYPES]], %[[T]] : tensor<20x8xf32>) positions(%[[SEG]], %[[T]] : tensor<20x8xf32>) {offset = 2 : i64}
  // CHECK-NEXT: batten.return
  batten.graph @embed(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: !x) {
    %t = batten.param @t : !t
    %0 = batten.embed %ids, %t : !t
    %1 = batten.embed_types %types, %t : !t
    %2 = batten.embed_positions %seg, %t {offset = 2 : i64} : !t
    %3 = batten.add %0, %1 : !x
    %4 = batten.add %3, %2 : !x
    batten.return %4 : !x
  }

  // Each add may stand the other way round: the sum is the same.
  // CHECK-LABEL: batten.graph @embed_commuted
  // CHECK: batten.embed_sum words({{.*}}) types({{.*}}) positions({{.*}})
  // CHECK-NEXT: batten.return
  batten.graph @embed_commuted(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: !x) {
    %t = batten.param @t : !t
    %0 = batten.embed %ids, %t : !t
    %1 = batten.embed_types %types, %t : !t
    %2 = batten.embed_positions %seg, %t : !t
    %3 = batten.add %1, %0 : !x
    %4 = batten.add %2, %3 : !x
    batten.return %4 : !x
  }

  // Word + position, without types.
  // CHECK-LABEL: batten.graph @embed_two
  // CHECK: batten.embed_sum words({{.*}}) positions({{.*}})
  batten.graph @embed_two(%ids: !batten.ids, %seg: !batten.segments) -> (x: !x) {
    %t = batten.param @t : !t
    %0 = batten.embed %ids, %t : !t
    %1 = batten.embed_positions %seg, %t : !t
    %2 = batten.add %0, %1 : !x
    batten.return %2 : !x
  }

  // (word + position) + type rounds otherwise than word + type + position: the second add stays, and a sum with another
  // use is kept.
  // CHECK-LABEL: batten.graph @embed_declined
  // CHECK: batten.embed %
  // CHECK: batten.embed_types
  // CHECK: batten.embed_positions
  // CHECK-COUNT-2: batten.add
  batten.graph @embed_declined(%ids: !batten.ids, %types: !batten.types, %seg: !batten.segments) -> (x: !x, y: !x) {
    %t = batten.param @t : !t
    %0 = batten.embed %ids, %t : !t
    %1 = batten.embed_types %types, %t : !t
    %2 = batten.embed_positions %seg, %t : !t
    %3 = batten.add %0, %2 : !x
    %4 = batten.add %3, %1 : !x
    batten.return %4, %0 : !x, !x
  }
}
