// libLLVM through its C API, found and loaded at run time: what this backend calls, declared here,
// so that neither headers nor a link are needed and one build works with LLVM 16 and newer.
//
// api().BuildFAdd is LLVMBuildFAdd. All pointers are opaque; see llvm-c/Core.h and Orc.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plait::llvm {

using Context = struct OpaqueContext*;
using Module = struct OpaqueModule*;
using Type = struct OpaqueType*;
using Value = struct OpaqueValue*;
using Block = struct OpaqueBlock*;
using Builder = struct OpaqueBuilder*;
using Attribute = struct OpaqueAttribute*;
using Metadata = struct OpaqueMetadata*;
using Target = struct OpaqueTarget*;
using TargetMachine = struct OpaqueTargetMachine*;
using TargetData = struct OpaqueTargetData*;
using MemoryBuffer = struct OpaqueMemoryBuffer*;
using Flag = int;  // LLVMBool

// name, result, parameters
#define PLAIT_LLVM_FUNCTIONS(X)                                                                  \
  X(ContextCreate, Context)                                                                      \
  X(ContextDispose, void, Context)                                                               \
  X(ModuleCreateWithNameInContext, Module, const char*, Context)                                 \
  X(DisposeModule, void, Module)                                                                 \
  X(SetTarget, void, Module, const char*)                                                        \
  X(SetModuleDataLayout, void, Module, TargetData)                                               \
  X(PrintModuleToString, char*, Module)                                                          \
  X(DisposeMessage, void, char*)                                                                 \
  X(CreateBuilderInContext, Builder, Context)                                                    \
  X(DisposeBuilder, void, Builder)                                                               \
  X(PositionBuilderAtEnd, void, Builder, Block)                                                  \
  X(GetInsertBlock, Block, Builder)                                                              \
  X(GetFirstInstruction, Value, Block)                                                           \
  X(PositionBuilderBefore, void, Builder, Value)                                                 \
  X(VoidTypeInContext, Type, Context)                                                            \
  X(IntTypeInContext, Type, Context, unsigned)                                                   \
  X(HalfTypeInContext, Type, Context)                                                            \
  X(FloatTypeInContext, Type, Context)                                                           \
  X(DoubleTypeInContext, Type, Context)                                                          \
  X(PointerTypeInContext, Type, Context, unsigned)                                               \
  X(VectorType, Type, Type, unsigned)                                                            \
  X(ArrayType, Type, Type, unsigned)                                                             \
  X(FunctionType, Type, Type, Type*, unsigned, Flag)                                             \
  X(TypeOf, Type, Value)                                                                         \
  X(ConstInt, Value, Type, unsigned long long, Flag)                                             \
  X(ConstNull, Value, Type)                                                                      \
  X(ConstVector, Value, Value*, unsigned)                                                        \
  X(ConstBitCast, Value, Value, Type)                                                            \
  X(GetUndef, Value, Type)                                                                       \
  X(AddFunction, Value, Module, const char*, Type)                                               \
  X(SetLinkage, void, Value, int)                                                                \
  X(GetNamedFunction, Value, Module, const char*)                                                \
  X(GetParam, Value, Value, unsigned)                                                            \
  X(GetEnumAttributeKindForName, unsigned, const char*, size_t)                                  \
  X(CreateEnumAttribute, Attribute, Context, unsigned, std::uint64_t)                            \
  X(AddAttributeAtIndex, void, Value, unsigned, Attribute)                                       \
  X(AppendBasicBlockInContext, Block, Context, Value, const char*)                               \
  X(LookupIntrinsicID, unsigned, const char*, size_t)                                            \
  X(GetIntrinsicDeclaration, Value, Module, unsigned, Type*, size_t)                             \
  X(IntrinsicGetType, Type, Context, unsigned, Type*, size_t)                                    \
  X(GetMDKindIDInContext, unsigned, Context, const char*, unsigned)                              \
  X(MDNodeInContext2, Metadata, Context, Metadata*, size_t)                                      \
  X(ValueAsMetadata, Metadata, Value)                                                            \
  X(MetadataAsValue, Value, Context, Metadata)                                                   \
  X(SetMetadata, void, Value, unsigned, Value)                                                   \
  X(SetAlignment, void, Value, unsigned)                                                         \
  X(BuildBr, Value, Builder, Block)                                                              \
  X(BuildCondBr, Value, Builder, Value, Block, Block)                                            \
  X(BuildRetVoid, Value, Builder)                                                                \
  X(BuildPhi, Value, Builder, Type, const char*)                                                 \
  X(AddIncoming, void, Value, Value*, Block*, unsigned)                                          \
  X(BuildAlloca, Value, Builder, Type, const char*)                                              \
  X(BuildLoad2, Value, Builder, Type, Value, const char*)                                        \
  X(BuildStore, Value, Builder, Value, Value)                                                    \
  X(BuildGEP2, Value, Builder, Type, Value, Value*, unsigned, const char*)                       \
  X(BuildCall2, Value, Builder, Type, Value, Value*, unsigned, const char*)                      \
  X(BuildICmp, Value, Builder, int, Value, Value, const char*)                                   \
  X(BuildFCmp, Value, Builder, int, Value, Value, const char*)                                   \
  X(BuildSelect, Value, Builder, Value, Value, Value, const char*)                               \
  X(BuildExtractElement, Value, Builder, Value, Value, const char*)                              \
  X(BuildInsertElement, Value, Builder, Value, Value, Value, const char*)                        \
  X(BuildShuffleVector, Value, Builder, Value, Value, Value, const char*)                        \
  PLAIT_LLVM_BINARY(X, FAdd)                                                                     \
  PLAIT_LLVM_BINARY(X, FSub)                                                                     \
  PLAIT_LLVM_BINARY(X, FMul)                                                                     \
  PLAIT_LLVM_BINARY(X, FDiv)                                                                     \
  PLAIT_LLVM_BINARY(X, Add)                                                                      \
  PLAIT_LLVM_BINARY(X, Sub)                                                                      \
  PLAIT_LLVM_BINARY(X, Mul)                                                                      \
  PLAIT_LLVM_BINARY(X, SDiv)                                                                     \
  PLAIT_LLVM_BINARY(X, SRem)                                                                     \
  PLAIT_LLVM_BINARY(X, UDiv)                                                                     \
  PLAIT_LLVM_BINARY(X, URem)                                                                     \
  PLAIT_LLVM_BINARY(X, And)                                                                      \
  PLAIT_LLVM_BINARY(X, Or)                                                                       \
  PLAIT_LLVM_BINARY(X, Xor)                                                                      \
  PLAIT_LLVM_BINARY(X, Shl)                                                                      \
  PLAIT_LLVM_BINARY(X, LShr)                                                                     \
  PLAIT_LLVM_BINARY(X, AShr)                                                                     \
  X(BuildFNeg, Value, Builder, Value, const char*)                                               \
  X(BuildNot, Value, Builder, Value, const char*)                                                \
  PLAIT_LLVM_CAST(X, BitCast)                                                                    \
  PLAIT_LLVM_CAST(X, ZExt)                                                                       \
  PLAIT_LLVM_CAST(X, SExt)                                                                       \
  PLAIT_LLVM_CAST(X, Trunc)                                                                      \
  PLAIT_LLVM_CAST(X, FPExt)                                                                      \
  PLAIT_LLVM_CAST(X, FPTrunc)                                                                    \
  PLAIT_LLVM_CAST(X, SIToFP)                                                                     \
  PLAIT_LLVM_CAST(X, UIToFP)                                                                     \
  PLAIT_LLVM_CAST(X, FPToSI)                                                                     \
  PLAIT_LLVM_CAST(X, FPToUI)                                                                     \
  X(InitializeX86TargetInfo, void)                                                               \
  X(InitializeX86Target, void)                                                                   \
  X(InitializeX86TargetMC, void)                                                                 \
  X(InitializeX86AsmPrinter, void)                                                               \
  X(GetDefaultTargetTriple, char*)                                                               \
  X(GetTargetFromTriple, Flag, const char*, Target*, char**)                                     \
  X(GetHostCPUName, char*)                                                                       \
  X(GetHostCPUFeatures, char*)                                                                   \
  X(CreateTargetMachine, TargetMachine, Target, const char*, const char*, const char*, int, int, \
    int)                                                                                         \
  X(CreateTargetDataLayout, TargetData, TargetMachine)                                           \
  X(TargetMachineEmitToMemoryBuffer, Flag, TargetMachine, Module, int, char**, MemoryBuffer*)    \
  X(GetBufferStart, const char*, MemoryBuffer)                                                   \
  X(GetBufferSize, size_t, MemoryBuffer)                                                         \
  X(DisposeMemoryBuffer, void, MemoryBuffer)
#define PLAIT_LLVM_BINARY(X, name) X(Build##name, Value, Builder, Value, Value, const char*)
#define PLAIT_LLVM_CAST(X, name) X(Build##name, Value, Builder, Value, Type, const char*)

struct Api {
#define PLAIT_LLVM_MEMBER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  PLAIT_LLVM_FUNCTIONS(PLAIT_LLVM_MEMBER)
#undef PLAIT_LLVM_MEMBER
  int version = 0;   // major
  std::string path;  // of the library
};

// The library that PLAIT_LLVM names, or the newest one of a known version: found without being
// loaded. Returns why there is none, or nothing.
std::string find_library();
// A text that changes when another library is found.
std::string library_identity();
// Loads what was found. Returns why that failed, or nothing.
std::string load();
const Api& api();  // after load

}  // namespace plait::llvm
