#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    reknit_fuzz::run("stack", data);
    reknit_fuzz::report_segments();
});
