//! AES-128 (FIPS 197).
//!
//! Keys and blocks are numbers, the first byte the most significant, so that they read as their usual hexadecimal form.

use crate::builder::{Bit, Builder};

/// A byte, least significant bit first.
type Byte = [Bit; 8];

impl Builder {
    /// The encryption of a block under a key, 128 bits each. 6,400 ANDs: 200 S-boxes of 32.
    ///
    /// # Panics
    /// Other widths.
    pub fn aes128(&mut self, key: &[Bit], block: &[Bit]) -> Vec<Bit> {
        let (mut key, mut state) = (bytes(key), bytes(block));
        let mut constant = 1u8;
        for round in 0..=10 {
            state = std::array::from_fn(|i| self.xor_bytes(&state[i], &key[i]));
            if round == 10 {
                break;
            }
            // SubBytes and ShiftRows: row r comes from r columns further.
            let substituted = state.map(|byte| self.aes_sbox(&byte));
            state = std::array::from_fn(|i| substituted[(i + 4 * (i % 4)) % 16]);
            if round < 9 {
                state = self.mix_columns(&state);
            }
            key = self.next_round_key(&key, constant);
            constant = constant << 1 ^ if constant & 0x80 == 0 { 0 } else { 0x1b };
        }
        state.iter().rev().flatten().copied().collect()
    }

    fn xor_bytes(&mut self, a: &Byte, b: &Byte) -> Byte {
        std::array::from_fn(|i| self.xor(a[i], b[i]))
    }

    /// Twice a byte in AES's field of 256 elements.
    fn doubled(&mut self, a: &Byte) -> Byte {
        let top = a[7];
        std::array::from_fn(|i| match i {
            0 => top,
            1 | 3 | 4 => self.xor(a[i - 1], top),
            _ => a[i - 1],
        })
    }

    fn mix_columns(&mut self, state: &[Byte; 16]) -> [Byte; 16] {
        let mut mixed = *state;
        for column in 0..4 {
            let s: [Byte; 4] = std::array::from_fn(|row| state[4 * column + row]);
            let (even, odd) = (self.xor_bytes(&s[0], &s[1]), self.xor_bytes(&s[2], &s[3]));
            let all = self.xor_bytes(&even, &odd);
            for row in 0..4 {
                // 2 x + 3 y + z + w = x + (all) + 2 (x + y)
                let pair = self.xor_bytes(&s[row], &s[(row + 1) % 4]);
                let twice = self.doubled(&pair);
                let sum = self.xor_bytes(&s[row], &all);
                mixed[4 * column + row] = self.xor_bytes(&sum, &twice);
            }
        }
        mixed
    }

    fn next_round_key(&mut self, key: &[Byte; 16], constant: u8) -> [Byte; 16] {
        let mut next = *key;
        for i in 0..16 {
            let before = if i < 4 { self.aes_sbox(&key[12 + (i + 1) % 4]) } else { next[i - 4] };
            next[i] = self.xor_bytes(&key[i], &before);
        }
        // The constant goes into the first byte of each word.
        for i in [0, 4, 8, 12] {
            for (b, bit) in next[i].iter_mut().enumerate() {
                *bit = if constant >> b & 1 == 1 { self.not(*bit) } else { *bit };
            }
        }
        next
    }

    /// AES's S-box of a byte. 32 ANDs: the straight-line program of Boyar and Peralta (2010, "A new combinational logic
    /// minimization technique with applications to cryptology", figures 5 to 7).
    pub fn aes_sbox(&mut self, byte: &[Bit; 8]) -> [Bit; 8] {
        let c = self;
        // The program counts from the most significant bit.
        let [x7, x6, x5, x4, x3, x2, x1, x0] = *byte;
        // From the byte to the 22 sums that are multiplied.
        let y14 = c.xor(x3, x5);
        let y13 = c.xor(x0, x6);
        let y9 = c.xor(x0, x3);
        let y8 = c.xor(x0, x5);
        let t0 = c.xor(x1, x2);
        let y1 = c.xor(t0, x7);
        let y4 = c.xor(y1, x3);
        let y12 = c.xor(y13, y14);
        let y2 = c.xor(y1, x0);
        let y5 = c.xor(y1, x6);
        let y3 = c.xor(y5, y8);
        let t1 = c.xor(x4, y12);
        let y15 = c.xor(t1, x5);
        let y20 = c.xor(t1, x1);
        let y6 = c.xor(y15, x7);
        let y10 = c.xor(y15, t0);
        let y11 = c.xor(y20, y9);
        let y7 = c.xor(x7, y11);
        let y17 = c.xor(y10, y11);
        let y19 = c.xor(y10, y8);
        let y16 = c.xor(t0, y11);
        let y21 = c.xor(y13, y16);
        let y18 = c.xor(x0, y16);
        // Down to the field of 16 elements ...
        let t2 = c.and(y12, y15);
        let t3 = c.and(y3, y6);
        let t4 = c.xor(t3, t2);
        let t5 = c.and(y4, x7);
        let t6 = c.xor(t5, t2);
        let t7 = c.and(y13, y16);
        let t8 = c.and(y5, y1);
        let t9 = c.xor(t8, t7);
        let t10 = c.and(y2, y7);
        let t11 = c.xor(t10, t7);
        let t12 = c.and(y9, y11);
        let t13 = c.and(y14, y17);
        let t14 = c.xor(t13, t12);
        let t15 = c.and(y8, y10);
        let t16 = c.xor(t15, t12);
        let t17 = c.xor(t4, t14);
        let t18 = c.xor(t6, t16);
        let t19 = c.xor(t9, t14);
        let t20 = c.xor(t11, t16);
        let t21 = c.xor(t17, y20);
        let t22 = c.xor(t18, y19);
        let t23 = c.xor(t19, y21);
        let t24 = c.xor(t20, y18);
        // ... the inverse there ...
        let t25 = c.xor(t21, t22);
        let t26 = c.and(t21, t23);
        let t27 = c.xor(t24, t26);
        let t28 = c.and(t25, t27);
        let t29 = c.xor(t28, t22);
        let t30 = c.xor(t23, t24);
        let t31 = c.xor(t22, t26);
        let t32 = c.and(t31, t30);
        let t33 = c.xor(t32, t24);
        let t34 = c.xor(t23, t33);
        let t35 = c.xor(t27, t33);
        let t36 = c.and(t24, t35);
        let t37 = c.xor(t36, t34);
        let t38 = c.xor(t27, t36);
        let t39 = c.and(t29, t38);
        let t40 = c.xor(t25, t39);
        // ... and up again.
        let t41 = c.xor(t40, t37);
        let t42 = c.xor(t29, t33);
        let t43 = c.xor(t29, t40);
        let t44 = c.xor(t33, t37);
        let t45 = c.xor(t42, t41);
        #[rustfmt::skip]
        let factors = [
            (t44, y15), (t37, y6), (t33, x7), (t43, y16), (t40, y1), (t29, y7),
            (t42, y11), (t45, y17), (t41, y10), (t44, y12), (t37, y3), (t33, y4),
            (t43, y13), (t40, y5), (t29, y2), (t42, y9), (t45, y14), (t41, y8),
        ];
        let z = factors.map(|(a, b)| c.and(a, b));
        // The affine map.
        let t46 = c.xor(z[15], z[16]);
        let t47 = c.xor(z[10], z[11]);
        let t48 = c.xor(z[5], z[13]);
        let t49 = c.xor(z[9], z[10]);
        let t50 = c.xor(z[2], z[12]);
        let t51 = c.xor(z[2], z[5]);
        let t52 = c.xor(z[7], z[8]);
        let t53 = c.xor(z[0], z[3]);
        let t54 = c.xor(z[6], z[7]);
        let t55 = c.xor(z[16], z[17]);
        let t56 = c.xor(z[12], t48);
        let t57 = c.xor(t50, t53);
        let t58 = c.xor(z[4], t46);
        let t59 = c.xor(z[3], t54);
        let t60 = c.xor(t46, t57);
        let t61 = c.xor(z[14], t57);
        let t62 = c.xor(t52, t58);
        let t63 = c.xor(t49, t58);
        let t64 = c.xor(z[4], t59);
        let t65 = c.xor(t61, t62);
        let t66 = c.xor(z[1], t63);
        let t67 = c.xor(t64, t65);
        let s0 = c.xor(t59, t63);
        let s3 = c.xor(t53, t66);
        let s4 = c.xor(t51, t66);
        let s5 = c.xor(t47, t65);
        let [s6, s7, s1, s2] = [(t56, t62), (t48, t60), (t64, s3), (t55, t67)].map(|(a, b)| {
            let equal = c.xor(a, b);
            c.not(equal)
        });
        [s7, s6, s5, s4, s3, s2, s1, s0]
    }
}

/// The bytes of a key or block, the first the most significant.
fn bytes(word: &[Bit]) -> [Byte; 16] {
    assert_eq!(word.len(), 128, "AES-128 takes keys and blocks of 128 bits");
    std::array::from_fn(|i| std::array::from_fn(|b| word[8 * (15 - i) + b]))
}
