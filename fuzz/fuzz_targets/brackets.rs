#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| polystep_fuzz::brackets(data));
