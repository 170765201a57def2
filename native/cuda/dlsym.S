/* SPDX-License-Identifier: Apache-2.0
 *
 * dlsym and dlvsym as the process calls them when this library is preloaded or linked.
 *
 * glibc takes the scope of RTLD_NEXT and RTLD_DEFAULT from the return address of its caller, so for
 * these two the real function is entered by a jump, with the stack as it came: a call from here
 * would make the search start at this library, and another interposer would find itself for ever.
 * Explicit handles do not depend on the caller and go to lookup.c.
 */

#if defined(__x86_64__)

	.macro lookup name, real, handle
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	leaq	1(%rdi), %rax		/* RTLD_NEXT is -1, RTLD_DEFAULT 0 */
	cmpq	$1, %rax
	ja	2f
1:	movq	\real(%rip), %rax
	testq	%rax, %rax
	je	3f
	jmpq	*%rax
2:	jmp	\handle
3:	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	.cfi_def_cfa_offset 32
	call	diapause_find_lookup
	popq	%rdx
	popq	%rsi
	popq	%rdi
	.cfi_def_cfa_offset 8
	jmp	1b
	.cfi_endproc
	.size	\name, . - \name
	.endm

#elif defined(__aarch64__)

	.macro lookup name, real, handle
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	add	x16, x0, #1
	cmp	x16, #1
	b.hi	2f
1:	adrp	x16, \real
	ldr	x16, [x16, :lo12:\real]
	cbz	x16, 3f
	br	x16
2:	b	\handle
3:	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset x29, -48
	.cfi_offset x30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	bl	diapause_find_lookup
	ldr	x2, [sp, #32]
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	b	1b
	.cfi_endproc
	.size	\name, . - \name
	.endm

#endif

	.text
	lookup	dlsym, diapause_real_dlsym, diapause_dlsym_handle
	lookup	dlvsym, diapause_real_dlvsym, diapause_dlvsym_handle

	.section .note.GNU-stack, "", %progbits
