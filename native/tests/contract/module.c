// SPDX-License-Identifier: Apache-2.0
/* Modules and libraries from PTX: what is in them and what is not. */
#include "contract.h"

#include "../../demo/kernels.h"

#include <stdio.h>
#include <string.h>

static const char unknown_instruction[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
					  ".visible .entry fill()\n{\n\tfrobnicate;\n\tret;\n}\n";
static const char unbalanced[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry fill()\n{\n";

static void loading(CUmodule *module)
{
	CUmodule other;

	code("load", cu.ModuleLoadData(module, kernels_ptx));
	code("load-null", cu.ModuleLoadData(&other, NULL));
	code("load-text", cu.ModuleLoadData(&other, "this is no program"));
	code("load-unknown-instruction", cu.ModuleLoadData(&other, unknown_instruction));
	code("load-unbalanced", cu.ModuleLoadData(&other, unbalanced));
	code("load-with-options", cu.ModuleLoadDataEx(&other, kernels_ptx, 0, NULL, NULL));
	code("unload", cu.ModuleUnload(other));
	code("unload-null", cu.ModuleUnload(NULL));
}

static void functions(CUmodule module)
{
	CUfunction function = NULL, again = NULL;
	size_t offset = 77, size = 77;
	const char *name = "";
	unsigned count = 0;
	int number = 0;

	code("function", cu.ModuleGetFunction(&function, module, "fill"));
	NEED(cu.ModuleGetFunction(&again, module, "fill"));
	yes("function-same", function == again);
	code("function-missing", cu.ModuleGetFunction(&again, module, "fil"));
	code("function-null", cu.ModuleGetFunction(&again, module, NULL));
	code("function-of-variable", cu.ModuleGetFunction(&again, module, "counters"));
	code("function-count", cu.ModuleGetFunctionCount(&count, module));
	value("function-count-is", "%u", count);
	code("function-name", cu.FuncGetName(&name, function));
	value("function-name-is", "%s", name);
	code("parameter", cu.FuncGetParamInfo(function, 2, &offset, &size));
	value("parameter-is", "offset %zu size %zu", offset, size);
	code("parameter-beyond", cu.FuncGetParamInfo(function, 3, &offset, &size));
	code("attribute", cu.FuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
	value("max-threads", "%d", number);
	code("attribute-unknown", cu.FuncGetAttribute(&number, 4711, function));
}

static void variables(CUmodule module)
{
	uint64_t words[4] = { 1, 2, 3, 4 }, back[4] = { 0 };
	CUdeviceptr address = 0;
	size_t size = 0;

	code("global", cu.ModuleGetGlobal(&address, &size, module, "counters"));
	value("global-size", "%zu", size);
	NEED(cu.MemcpyDtoH(back, address, sizeof(back)));
	yes("global-zero", !back[0] && !back[1] && !back[2] && !back[3]);
	code("global-write", cu.MemcpyHtoD(address, words, sizeof(words)));
	NEED(cu.MemcpyDtoH(back, address, sizeof(back)));
	yes("global-kept", memcmp(words, back, sizeof(words)) == 0);
	code("global-missing", cu.ModuleGetGlobal(&address, &size, module, "counter"));
	code("global-of-function", cu.ModuleGetGlobal(&address, &size, module, "fill"));
	code("global-null", cu.ModuleGetGlobal(&address, &size, module, NULL));
	code("global-free", cu.MemFree(address));
}

static void libraries(void)
{
	CUlibrary library = NULL;
	CUfunction function = NULL;
	CUkernel kernel = NULL;

	code("library", cu.LibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
	code("library-kernel", cu.LibraryGetKernel(&kernel, library, "fill"));
	code("library-missing", cu.LibraryGetKernel(&kernel, library, "fil"));
	code("kernel-function", cu.KernelGetFunction(&function, kernel));
	yes("kernel-function-set", function != NULL);
	code("library-unload", cu.LibraryUnload(library));
}

void group_module(void)
{
	CUmodule module;

	contract_open();
	loading(&module);
	functions(module);
	variables(module);
	libraries();
	code("unload-last", cu.ModuleUnload(module));
}
