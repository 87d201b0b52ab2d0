// RUN: batten-opt %s --fold-weights | FileCheck %s
// RUN: batten-opt %s --fold-weights=report=true -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// REPORT: remark: groups of linears joined: 2, weight concats flattened: 1

#tokens = #batten.rows<tokens>
!x = tensor<?x8xf32, #tokens>
!w = tensor<8x8xf32>
!v = tensor<8xf32>
module {
  batten.weight @t from "t" : tensor<20x8xf32>
  batten.weight @q from "q" : !w
  batten.weight @k from "k" : !w
  batten.weight @b from "b" : !v

  // Three linears of one input become one, in order, and it has the join's name.
  // CHECK-LABEL: batten.graph @qkv
  // CHECK: %[[X:.*]] = batten.embed
  // CHECK: %[[W:.*]] = batten.concat %[[Q:.*]], %[[K:.*]], %[[Q]] : tensor<8x8xf32>
  // CHECK: %[[B:.*]] = batten.concat %{{.*}}, %{{.*}}, %{{.*}} : tensor<8xf32>
  // CHECK: %[[R:.*]] = batten.linear %[[X]], %[[W]] bias(%[[B]] : tensor<24xf32>) : tensor<?x8xf32, #tokens>, tensor<24x8xf32>
  // CHECK-NOT: concat_cols
  // CHECK: batten.return %[[R]]
  batten.graph @qkv(%ids: !batten.ids) -> (x: tensor<?x24xf32, #tokens>) {
    %t = batten.param @t : tensor<20x8xf32>
    %q = batten.param @q : !w
    %k = batten.param @k : !w
    %b = batten.param @b : !v
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.linear %x, %q bias(%b : !v) : !x, !w
    %1 = batten.linear %x, %k bias(%b : !v) : !x, !w
    %2 = batten.linear %x, %q bias(%b : !v) : !x, !w
    %3 = batten.concat_cols %0, %1, %2 : !x, !x, !x
    batten.return %3 : tensor<?x24xf32, #tokens>
  }

  // Without biases, with an activation in common; nested concats of weights become one.
  // CHECK-LABEL: batten.graph @no_bias
  // CHECK: %[[W:.*]] = batten.concat %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  // CHECK-NOT: batten.concat
  // CHECK: batten.linear %{{.*}}, %[[W]] act relu :
  batten.graph @no_bias(%ids: !batten.ids) -> (x: tensor<?x24xf32, #tokens>) {
    %t = batten.param @t : tensor<20x8xf32>
    %q = batten.param @q : !w
    %k = batten.param @k : !w
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %c = batten.concat %q, %k : !w, !w
    %0 = batten.linear %x, %c act relu : !x, tensor<16x8xf32>
    %1 = batten.linear %x, %k act relu : !x, !w
    %2 = batten.concat_cols %0, %1 : tensor<?x16xf32, #tokens>, !x
    batten.return %2 : tensor<?x24xf32, #tokens>
  }

  // Left alone: another input, another activation, a bias on one side only, a second use, a residual, no linear.
  // CHECK-LABEL: batten.graph @declined
  // CHECK-COUNT-6: batten.concat_cols
  batten.graph @declined(%ids: !batten.ids)
      -> (a: tensor<?x16xf32, #tokens>, b: tensor<?x16xf32, #tokens>, c: tensor<?x16xf32, #tokens>,
          d: tensor<?x16xf32, #tokens>, e: tensor<?x16xf32, #tokens>, f: tensor<?x16xf32, #tokens>, g: !x) {
    %t = batten.param @t : tensor<20x8xf32>
    %q = batten.param @q : !w
    %b = batten.param @b : !v
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.linear %x, %q : !x, !w
    %1 = batten.linear %0, %q : !x, !w
    %2 = batten.concat_cols %1, %0 : !x, !x
    %3 = batten.linear %x, %q act relu : !x, !w
    %4 = batten.linear %x, %q : !x, !w
    %5 = batten.concat_cols %3, %4 : !x, !x
    %6 = batten.linear %x, %q bias(%b : !v) : !x, !w
    %7 = batten.linear %x, %q : !x, !w
    %8 = batten.concat_cols %6, %7 : !x, !x
    %9 = batten.linear %x, %q : !x, !w
    %10 = batten.linear %x, %q : !x, !w
    %11 = batten.concat_cols %9, %10 : !x, !x
    %12 = batten.linear %x, %q residual(%x : !x) : !x, !w
    %13 = batten.linear %x, %q : !x, !w
    %14 = batten.concat_cols %12, %13 : !x, !x
    %15 = batten.linear %x, %q : !x, !w
    %16 = batten.concat_cols %15, %x : !x, !x
    batten.return %2, %5, %8, %11, %14, %16, %9 : tensor<?x16xf32, #tokens>, tensor<?x16xf32, #tokens>,
      tensor<?x16xf32, #tokens>, tensor<?x16xf32, #tokens>, tensor<?x16xf32, #tokens>, tensor<?x16xf32, #tokens>, !x
  }

  // Expressions that change no bit go away: transposed twice, scaled by 1, cast to what it is, a concat of one. A scale
  // by another number and a cast that rounds stay.
  // CHECK-LABEL: batten.graph @expressions
  // CHECK: %[[Q:.*]] = batten.param @q
  // CHECK: batten.linear %{{.*}}, %[[Q]] :
  // CHECK: %[[S:.*]] = batten.scale %[[Q]] by 5.000000e-01
  // CHECK: %[[H:.*]] = batten.cast %[[S]] : tensor<8x8xf32> to tensor<8x8xf16>
  // CHECK: %[[F:.*]] = batten.cast %[[H]] : tensor<8x8xf16> to tensor<8x8xf32>
  // CHECK: batten.linear %{{.*}}, %[[F]] :
  batten.graph @expressions(%ids: !batten.ids) -> (x: !x) {
    %t = batten.param @t : tensor<20x8xf32>
    %q = batten.param @q : !w
    %x = batten.embed %ids, %t : tensor<20x8xf32>
    %0 = batten.transpose %q : !w
    %1 = batten.transpose %0 : !w
    %2 = batten.scale %1 by 1.0 : !w
    %3 = batten.cast %2 : !w to !w
    %4 = batten.concat %3 : !w
    %5 = batten.linear %x, %4 : !x, !w
    %6 = batten.scale %q by 0.5 : !w
    %7 = batten.cast %6 : !w to tensor<8x8xf16>
    %8 = batten.cast %7 : tensor<8x8xf16> to !w
    %9 = batten.linear %5, %8 : !x, !w
    batten.return %9 : !x
  }
}
