// Asks pkg-config where SpMLA is; STATIC=1 links libspmla.a.
use std::process::Command;

fn main() {
    let libs = Command::new("pkg-config")
        .args(["--libs", "--static", "spmla"])
        .output()
        .expect("pkg-config");
    assert!(libs.status.success(), "no spmla.pc in PKG_CONFIG_PATH");
    let fixed = std::env::var("STATIC").is_ok();
    println!("cargo:rerun-if-env-changed=STATIC");
    for word in String::from_utf8(libs.stdout).unwrap().split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if word == "-lspmla" && fixed {
            println!("cargo:rustc-link-lib=static=spmla");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}
