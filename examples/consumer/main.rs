//! What the CPU backend can do, asked from Rust.
use std::ffi::{c_char, c_void, CStr};
use std::ptr::null;

/// spmla_device of "spmla/spmla_plan.h".
#[repr(C)]
struct Device {
    struct_bytes: u32,
    kind: u32,
    arch: u32,
    sm_count: u32,
    subgroup_width: u32,
    reserved: u32,
    ops: u64,
}

extern "C" {
    static spmla_cpu: c_void;
    fn spmla_version_string() -> *const c_char;
    fn spmla_backend_query(
        backend: *const c_void,
        native: *const c_void,
        device: *mut Device,
        diag: *mut c_void,
    ) -> i32;
}

fn main() {
    let mut device = Device {
        struct_bytes: std::mem::size_of::<Device>() as u32,
        kind: 0,
        arch: 0,
        sm_count: 0,
        subgroup_width: 0,
        reserved: 0,
        ops: 0,
    };
    let (status, version) = unsafe {
        (
            spmla_backend_query(
                &spmla_cpu,
                null(),
                &mut device,
                null::<c_void>() as *mut c_void,
            ),
            CStr::from_ptr(spmla_version_string()),
        )
    };
    assert_eq!(status, 0);
    println!(
        "spmla {}, {} operations",
        version.to_str().unwrap(),
        device.ops.count_ones()
    );
}
