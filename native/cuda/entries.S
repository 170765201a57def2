/* SPDX-License-Identifier: Apache-2.0
 *
 * The exported functions, one for every line of symbols.def, in the order of the table.
 *
 * Replaced and gated ones lead to functions in C. A forwarded one is a jump through its slot:
 * registers and stack are as the caller left them, so it is right for every signature, known or not.
 * Slots start at a stub that knows its index and goes to diapause_resolve, which loads the real
 * library and fills all of them. The stub keeps the argument registers of the C ABI; vector arguments
 * wider than 16 bytes, which the driver API does not have, would lose their upper part in the first
 * call.
 */

#if defined(__x86_64__)

	.macro jump
	jmpq	*diapause_slots + 8 * index(%rip)
	.endm

	.macro lazy
	pushq	$index
	jmp	.Lresolve
	.endm

	.text
	.type	.Lresolve, @function
.Lresolve:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%r8
	pushq	%r9
	pushq	%rax
	pushq	%r10
	subq	$128, %rsp
	.cfi_def_cfa_offset 208
	movaps	%xmm0, (%rsp)
	movaps	%xmm1, 16(%rsp)
	movaps	%xmm2, 32(%rsp)
	movaps	%xmm3, 48(%rsp)
	movaps	%xmm4, 64(%rsp)
	movaps	%xmm5, 80(%rsp)
	movaps	%xmm6, 96(%rsp)
	movaps	%xmm7, 112(%rsp)
	movq	192(%rsp), %rdi
	call	diapause_resolve
	movq	%rax, %r11
	movaps	(%rsp), %xmm0
	movaps	16(%rsp), %xmm1
	movaps	32(%rsp), %xmm2
	movaps	48(%rsp), %xmm3
	movaps	64(%rsp), %xmm4
	movaps	80(%rsp), %xmm5
	movaps	96(%rsp), %xmm6
	movaps	112(%rsp), %xmm7
	addq	$128, %rsp
	popq	%r10
	popq	%rax
	popq	%r9
	popq	%r8
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	addq	$8, %rsp
	.cfi_def_cfa_offset 8
	jmpq	*%r11
	.cfi_endproc
	.size	.Lresolve, . - .Lresolve

#elif defined(__aarch64__)

	.macro jump
	adrp	x16, diapause_slots + 8 * index
	ldr	x16, [x16, :lo12:diapause_slots + 8 * index]
	br	x16
	.endm

	.macro lazy
	mov	w17, #index
	b	.Lresolve
	.endm

	.text
	.type	.Lresolve, %function
.Lresolve:
	.cfi_startproc
	stp	x29, x30, [sp, #-224]!
	.cfi_def_cfa_offset 224
	.cfi_offset x29, -224
	.cfi_offset x30, -216
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	stp	x2, x3, [sp, #32]
	stp	x4, x5, [sp, #48]
	stp	x6, x7, [sp, #64]
	str	x8, [sp, #80]
	stp	q0, q1, [sp, #96]
	stp	q2, q3, [sp, #128]
	stp	q4, q5, [sp, #160]
	stp	q6, q7, [sp, #192]
	mov	w0, w17
	bl	diapause_resolve
	mov	x16, x0
	ldp	q6, q7, [sp, #192]
	ldp	q4, q5, [sp, #160]
	ldp	q2, q3, [sp, #128]
	ldp	q0, q1, [sp, #96]
	ldr	x8, [sp, #80]
	ldp	x6, x7, [sp, #64]
	ldp	x4, x5, [sp, #48]
	ldp	x2, x3, [sp, #32]
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #224
	.cfi_def_cfa_offset 0
	br	x16
	.cfi_endproc
	.size	.Lresolve, . - .Lresolve

#else
#error "an architecture without entries"
#endif

/* The entries. They lie together, so that an address tells whether it is one of them. */

	.macro begin name
	.p2align 4
	.globl	\name
	.type	\name, %function
\name:
.Lentry_\name:
	.endm

	.macro end name
	.size	\name, . - \name
	.set	index, index + 1
	.endm

	.macro forward name
	begin	\name
	jump
	end	\name
	.endm

	.macro lead name, to
	begin	\name
#if defined(__x86_64__)
	jmp	\to
#else
	b	\to
#endif
	end	\name
	.endm

	.p2align 4
	.globl	diapause_entries_begin
	.hidden	diapause_entries_begin
diapause_entries_begin:
	.cfi_startproc
	.set	index, 0
#define FORWARD(name) forward name
#define GATE(name) lead name, gated_##name
#define REPLACE(name) lead name, replaced_##name
#include "symbols.def"
#undef FORWARD
#undef GATE
#undef REPLACE
	.cfi_endproc
	.globl	diapause_entries_end
	.hidden	diapause_entries_end
diapause_entries_end:

	.macro stub name
.Llazy_\name:
	lazy
	.set	index, index + 1
	.endm

	.set	index, 0
#define FORWARD(name) stub name
#define GATE(name) stub name
#define REPLACE(name) stub name
#include "symbols.def"
#undef FORWARD
#undef GATE
#undef REPLACE

/* What the entries jump through: filled by real.c. */

	.data
	.p2align 6
	.globl	diapause_slots
	.hidden	diapause_slots
diapause_slots:
#define FORWARD(name) .quad .Llazy_##name
#define GATE(name) .quad .Llazy_##name
#define REPLACE(name) .quad .Llazy_##name
#include "symbols.def"
#undef FORWARD
#undef GATE
#undef REPLACE

/* Where they lie. Local labels: an exported name could be bound to another library's function. */

	.section .data.rel.ro, "aw", %progbits
	.p2align 3
	.globl	diapause_entries
	.hidden	diapause_entries
diapause_entries:
#define FORWARD(name) .quad .Lentry_##name
#define GATE(name) .quad .Lentry_##name
#define REPLACE(name) .quad .Lentry_##name
#include "symbols.def"
#undef FORWARD
#undef GATE
#undef REPLACE

	.section .note.GNU-stack, "", %progbits
