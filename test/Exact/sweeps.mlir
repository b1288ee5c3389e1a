// RUN: linattn-run %s --all --open-size=1,21 --form=chunk:4 --compare=exact
// RUN: linattn-run %s --entry=scalar --open-size=37 --form=chunk:16 --compare=exact
// RUN: linattn-run %s --entry=transition --open-size=37 --compare=exact

// Both reads of a sweep in one pass, in chunks, are those of the naive loops.

func.func @plain(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v value_query(%x) into(%o, %p) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}

func.func @scalar(%q: tensor<1x2x?x5xf32>, %k: tensor<1x2x?x5xf32>, %v: tensor<1x2x?x9xf32>, %g: tensor<1x2x?xf32>, %x: tensor<1x2x?x9xf32>, %o: tensor<1x2x?x9xf32>, %p: tensor<1x2x?x5xf32>, %s: tensor<1x2x5x9xf32>) -> (tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) readout(exclusive) into(%o, %p) init(%s) {scale = 0.5}
    : (tensor<1x2x?x5xf32>, tensor<1x2x?x5xf32>, tensor<1x2x?x9xf32>, tensor<1x2x?xf32>, tensor<1x2x?x9xf32>, tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>) -> (tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>
}

func.func @scalar_writes(%q: tensor<1x2x?x5xf32>, %k: tensor<1x2x?x5xf32>, %v: tensor<1x2x?x9xf32>, %g: tensor<1x2x?xf32>, %x: tensor<1x2x?x9xf32>, %o: tensor<1x2x?x9xf32>, %p: tensor<1x2x?x5xf32>, %s: tensor<1x2x5x9xf32>) -> (tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) readout(exclusive) into(%o, %p) init(%s) {reverse, decay_writes}
    : (tensor<1x2x?x5xf32>, tensor<1x2x?x5xf32>, tensor<1x2x?x9xf32>, tensor<1x2x?xf32>, tensor<1x2x?x9xf32>, tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>) -> (tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x9xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x9xf32>
}

func.func @heads(%q: tensor<1x2x?x8xf32>, %k: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<2xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x8xf32>, %s: tensor<1x2x8x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x8xf32>, tensor<1x2x8x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s) {reverse, decay_writes}
    : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x3xf32>, tensor<2xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x8xf32>, tensor<1x2x8x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x8xf32>, tensor<1x2x8x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x8xf32>, tensor<1x2x8x3xf32>
}

func.func @channels(%q: tensor<1x2x?x5xf32>, %k: tensor<1x2x?x5xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x5xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x5xf32>, %s: tensor<1x2x5x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) into(%o, %p) init(%s) {reverse}
    : (tensor<1x2x?x5xf32>, tensor<1x2x?x5xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>
}

func.func @channels_exclusive(%q: tensor<1x2x?x5xf32>, %k: tensor<1x2x?x5xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?x5xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x5xf32>, %s: tensor<1x2x5x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) value_query(%x) readout(exclusive) into(%o, %p) init(%s) {decay_writes}
    : (tensor<1x2x?x5xf32>, tensor<1x2x?x5xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x5xf32>, tensor<1x2x5x3xf32>
}

func.func @transition(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v decay(%g) a(%a) b(%b) value_query(%x) readout(exclusive) into(%o, %p) init(%s) {reverse}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}

func.func @transition_inclusive(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %q, %k, %v a(%a) b(%b) value_query(%x) into(%o, %p) init(%s) {scale = 0.5}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}

func.func @shared(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x3xf32>, %g: tensor<1x2x?xf32>, %a: tensor<1x2x?x4xf32>, %b: tensor<1x2x?x4xf32>, %x: tensor<1x2x?x3xf32>, %o: tensor<1x2x?x3xf32>, %p: tensor<1x2x?x4xf32>, %s: tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) {
  %r:3 = linattn.sweep %a, %k, %v decay(%g) a(%a) b(%b) value_query(%x) readout(exclusive) into(%o, %p) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>) -> (tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>)
  return %r#0, %r#1, %r#2 : tensor<1x2x?x3xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x3xf32>
}
