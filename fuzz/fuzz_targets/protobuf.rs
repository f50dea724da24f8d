#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kenter_fuzz::run("protobuf", data));
