//! The command line as people meet it: every `console` block of tests/cmd/*.md is run, and its output compared.

#[test]
fn the_command_line() {
    trycmd::TestCases::new().case("tests/cmd/*.md").case("../../README.md");
}
