# SPDX-License-Identifier: Apache-2.0
"""The signatures of driver functions, read from the CUDA headers and reduced to what the C ABI sees."""

import re
from collections.abc import Iterable

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# `#define cuMemcpyHtoD __CUDA_API_PTDS(cuMemcpyHtoD_v2)`: until the #undef, the name on the left is
# declared and the one on the right meant, with and without the suffix.
RENAME = re.compile(r"#\s*define\s+(cu\w+)\s+(?:__CUDA_API_(PTDS|PTSZ)\s*\(\s*)?(cu\w+)")
UNDEFINED = re.compile(r"#\s*undef\s+cu")
DECLARATION = re.compile(r"\bCUresult\s+CUDAAPI\s+(cu\w+)\s*\(([^;]*?)\)\s*;")
POINTER = re.compile(r"\bCUresult\s*\(CUDAAPI\s*\*\s*PFN_(cu\w+?)_v\d+\)\s*\(([^;]*?)\)\s*;")

ENUMERATION = re.compile(r"\btypedef\s+enum\s*\w*\s*\{[^}]*\}\s*(\w+)\s*;")
HANDLE = re.compile(r"\btypedef\s+(?:const\s+)?struct\s+\w+\s*\*\s*(\w+)\s*;")
FUNCTION = re.compile(r"\btypedef\s+\w+\s*\(\s*(?:CUDA_CB\s*)?\*\s*(\w+)\s*\)\s*\(")
ALIAS = re.compile(r"\btypedef\s+(?!struct|enum|union)(\w+)\s+(\w+)\s*;")

KNOWN = {
    **{name: name for name in ("int", "unsigned int", "unsigned long long", "size_t", "float")},
    **{name: name for name in ("unsigned char", "unsigned short")},
    "unsigned": "unsigned int",
    "cuuint32_t": "unsigned int",
    "cuuint64_t": "unsigned long long",
    "CUdevice": "int",
    "CUdeviceptr": "unsigned long long",
    "CUdeviceptr_v1": "unsigned int",
    "CUtexObject": "unsigned long long",
    "CUsurfObject": "unsigned long long",
    "CUmemGenericAllocationHandle": "unsigned long long",
    # By value, so that their size counts (gate_calls.c).
    "CUipcMemHandle": "struct bytes64",
    "CUipcEventHandle": "struct bytes64",
    "CUeglFrame": "struct bytes64",
    "CUmemLocation": "struct location",
    # Of headers that are not NVIDIA's.
    "CUoutput_mode": "int",
    "GLuint": "unsigned int",
    "GLenum": "unsigned int",
    "VdpDevice": "unsigned int",
    "VdpVideoSurface": "unsigned int",
    "VdpOutputSurface": "unsigned int",
    "EGLint": "int",
    "EGLImageKHR": "void *",
    "EGLStreamKHR": "void *",
    "EGLSyncKHR": "void *",
    "CUeglStreamConnection": "void *",
}


class Prototypes:
    def __init__(self, texts: Iterable[str]) -> None:
        self.parameters: dict[str, str] = {}
        self.types = dict(KNOWN)
        for text in sorted((COMMENT.sub("", text) for text in texts), key=len, reverse=True):
            self._types(text)
            self._functions(text)

    def _types(self, text: str) -> None:
        self.types |= dict.fromkeys(ENUMERATION.findall(text), "int")
        self.types |= dict.fromkeys(HANDLE.findall(text) + FUNCTION.findall(text), "void *")
        for old, new in ALIAS.findall(text):
            if old in self.types:
                self.types.setdefault(new, self.types[old])

    def _functions(self, text: str) -> None:
        undefined = UNDEFINED.search(text)
        end = undefined.start() if undefined else len(text)
        renames = {old: (new, suffix) for old, suffix, new in RENAME.findall(text[:end])}
        for name, parameters in DECLARATION.findall(text[:end]):
            meant, suffix = renames.get(name, (name, ""))
            self.parameters.setdefault(meant, parameters)
            if suffix:
                self.parameters.setdefault(f"{meant}_{suffix.lower()}", parameters)
        self.parameters |= dict(DECLARATION.findall(text[end:]))
        for name, parameters in POINTER.findall(text):  # cudaProfiler.h is in another package
            self.parameters.setdefault(name, parameters)

    def gate(self, name: str) -> str:
        """The line of gates.def for a function that is declared."""
        text = " ".join(self.parameters[name].split())
        pairs = [] if text in ("", "void") else [self._reduced(name, part) for part in text.split(",")]
        typed = ", ".join(f"{kind}{'' if kind.endswith('*') else ' '}{word}" for kind, word in pairs)
        return f"GATE({name}, ({typed or 'void'}), ({', '.join(word for _, word in pairs)}))"

    def _reduced(self, function: str, parameter: str) -> tuple[str, str]:
        """`const char *name` → ("void *", "name")."""
        kind, word = re.fullmatch(r"\s*(.*?)(\w+)(?:\[\])?\s*", parameter).groups()
        kind = " ".join(kind.replace("const ", "").split())
        if "*" in kind or parameter.rstrip().endswith("]"):
            return "void *", word
        if kind not in self.types:
            raise SystemExit(f"{function}: {kind} {word}: how is that handed over?")
        return self.types[kind], word
