//! Decisions from the bytes of an input. When they are used up, all further decisions are 0.

/// The most operations of an input.
const MAX_OPERATIONS: usize = 2000;

pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Input<'a> {
        Input { rest }
    }

    /// Lets `operate` take one operation after the other, until the bytes are used up or there were too many.
    pub(crate) fn operations(mut self, mut operate: impl FnMut(&mut Input<'a>)) {
        for _ in 0..MAX_OPERATIONS {
            if self.is_empty() {
                break;
            }
            operate(&mut self);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn u8(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes([self.u8(), self.u8(), self.u8(), self.u8()])
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.u8() & 1 == 1
    }

    /// A number below `n`, which must not be 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.u8()) % n
    }

    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Up to `n` bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (bytes, rest) = self.rest.split_at(n.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// A difference: most are small.
    pub(crate) fn delta(&mut self) -> u32 {
        match self.u8() {
            0..=127 => 0,
            128..=159 => i32::from(self.u8().cast_signed()).cast_unsigned(),
            160..=199 => (i32::from(self.u8().cast_signed()) * 100).cast_unsigned(),
            200..=239 => (i32::from(self.u16().cast_signed()) * 8).cast_unsigned(),
            _ => self.u32(),
        }
    }
}
