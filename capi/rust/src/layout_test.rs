// SPDX-License-Identifier: Apache-2.0
//! Writes what abi.rs and the enums claim as assertions in C, and has the C compiler hold them against the header.

use std::fmt::Write;
use std::process::Command;

use crate::{abi, Code, ElementType};

/// The tree that this crate is part of: the first folder up from here with the header in it.
fn root() -> std::path::PathBuf {
    let here = std::env::current_dir().unwrap();
    let found = here.ancestors().find(|folder| folder.join("include/pyflame_rt/pyflame_rt.h").exists());
    found.expect("the test runs inside of the source tree").to_path_buf()
}

/// Whether a C file with |assertions| compiles, and what the compiler says.
fn compiles(name: &str, assertions: &str) -> (bool, String) {
    let file = std::env::temp_dir().join(format!("pyflame_rt_{}_{}.c", name, std::process::id()));
    std::fs::write(&file, format!("#include <pyflame_rt/pyflame_rt.h>\n{}", assertions)).unwrap();
    let mut cc = Command::new("cc");
    let done = cc.args(["-std=c11", "-fsyntax-only", "-I"]).arg(root().join("include")).arg(&file).output();
    std::fs::remove_file(&file).unwrap();
    let done = done.expect("the test needs the C compiler cc");
    (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
}

fn assertions(fields: &[(&str, &str, usize, usize)], wholes: &[(&str, usize)]) -> String {
    let mut lines = String::new();
    for (name, field, offset, size) in fields {
        let is = format!("offsetof({0}, {1}) == {2} && sizeof((({0}*)0)->{1}) == {3}", name, field, offset, size);
        writeln!(lines, "_Static_assert({}, \"{}.{}\");", is, name, field).unwrap();
    }
    for (name, size) in wholes {
        writeln!(lines, "_Static_assert(sizeof({0}) == {1}, \"{0}\");", name, size).unwrap();
    }
    lines
}

#[test]
fn structs_lie_as_in_the_header() {
    let (fields, wholes) = abi::layout();
    assert!(fields.len() > 100 && wholes.len() == 7, "{} fields, {} structs", fields.len(), wholes.len());
    let (right, said) = compiles("layout", &assertions(&fields, &wholes));
    assert!(right, "{}", said);
}

#[test]
fn a_slot_that_moved_is_found() {
    let (mut fields, _) = abi::layout();
    let run = fields.iter_mut().find(|(table, field, ..)| *table == "pfrt_session_api" && *field == "run_named");
    run.unwrap().2 += 8;
    let (right, said) = compiles("moved", &assertions(&fields, &[]));
    assert!(!right && said.contains("pfrt_session_api.run_named"), "{}", said);
}

#[test]
fn numbers_are_those_of_the_header() {
    let mut lines = String::new();
    let mut hold = |name: String, number: u32| writeln!(lines, "_Static_assert({0} == {1}, \"{0}\");", name, number);
    for (name, number) in Code::C_NAMES {
        hold(format!("PFRT_CODE_{}", name), *number).unwrap();
    }
    for (name, number) in ElementType::C_NAMES {
        hold(format!("PFRT_DTYPE_{}", name), *number).unwrap();
    }
    hold("PFRT_MAKE_ABI(PFRT_ABI_MAJOR, 0)".to_string(), abi::VERSION).unwrap();
    hold("PFRT_OPTIONS_SESSION".to_string(), abi::OPTIONS_SESSION).unwrap();
    hold("PFRT_COPY".to_string(), abi::MEMORY_COPY).unwrap();
    let kinds = ["UNSET", "TENSOR", "SEQUENCE", "MAP", "OPTIONAL", "SPARSE"]; // as session.rs and tensor.rs count them
    for (number, kind) in kinds.iter().enumerate() {
        hold(format!("PFRT_VALUE_{}", kind), number as u32).unwrap();
    }
    let (right, said) = compiles("numbers", &lines);
    assert!(right, "{}", said);
}
