/* The dialect from C: builds attributes, parses a module, and runs a pass. */
#include "linattn-c/Dialect.h"
#include "mlir-c/Pass.h"
#include <stdio.h>

static const char *kModule =
    "func.func @layer(%q: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {\n"
    "  %o = linattn.attention %q, %q, %q {causal}\n"
    "    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) "
    "-> tensor<1x2x?x16xf32>\n"
    "  return %o : tensor<1x2x?x16xf32>\n"
    "}\n";

static void print(MlirStringRef text, void *unused) {
  (void)unused;
  fwrite(text.data, 1, text.length, stdout);
}

static MlirStringRef text(const char *characters) {
  return mlirStringRefCreateFromCString(characters);
}

static int runPass(MlirContext context, const char *name) {
  MlirModule module = mlirModuleCreateParse(context, text(kModule));
  if (mlirModuleIsNull(module))
    return 1;
  MlirPassManager passes = mlirPassManagerCreate(context);
  int failed =
      mlirLogicalResultIsFailure(mlirParsePassPipeline(
          mlirPassManagerGetAsOpPassManager(passes), text(name), print, NULL)) ||
      mlirLogicalResultIsFailure(
          mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module)));
  if (!failed)
    mlirOperationPrint(mlirModuleGetOperation(module), print, NULL);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  return failed;
}

int main(void) {
  MlirContext context = mlirContextCreate();
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  linattnRegisterAllDialects(registry);
  linattnRegisterAllPasses();
  mlirContextAppendDialectRegistry(context, registry);
  mlirDialectHandleLoadDialect(mlirGetDialectHandle__linattn__(), context);

  MlirAttribute map = linattnFeatureMapAttrGet(context, text("elu1"));
  mlirAttributePrint(map, print, NULL);
  printf(" is a map: %d, has the kind ", linattnAttributeIsAFeatureMap(map));
  print(linattnFeatureMapAttrGetKind(map), NULL);
  printf("\n");
  mlirAttributePrint(linattnNormalizeAttrGet(context, 0.5), print, NULL);
  printf("\n");
  MlirAttribute config = linattnConfigAttrGet(context, text("chunk"), 16);
  mlirAttributePrint(config, print, NULL);
  printf(" has the form ");
  print(linattnConfigAttrGetForm(config), NULL);
  printf("\n");
  printf("unknown kinds are null: %d, unknown forms: %d\n",
         mlirAttributeIsNull(linattnFeatureMapAttrGet(context, text("nothing"))),
         mlirAttributeIsNull(linattnConfigAttrGet(context, text("nothing"), 0)));

  int failed = runPass(context, "builtin.module(func.func(linattn-causal-to-scan))");
  mlirDialectRegistryDestroy(registry);
  mlirContextDestroy(context);
  return failed;
}
