//! `polystep prove --latex`, as the paper prints its example. Not among tests/cmd: trycmd reads every backslash as a path's.

use std::process::Command;

#[test]
fn a_proof_for_papers() {
    let arguments = ["prove", "(2*x2^2)*(3*x2^1+4)+(5*x1^2)*(2)*(3)", "--latex", "--granularity", "fine"];
    let output = Command::new(env!("CARGO_BIN_EXE_polystep")).args(arguments).output().unwrap();
    assert!(output.status.success());
    let expected = r"\begin{align*}
P_0 &= \left(2 x_{2}^{2}\right) \underline{\left(3 x_{2}^{1} + 4\right)} + \left(5 x_{1}^{2}\right) \left(2\right) \left(3\right) && (P_{0}) \text{ facstep} \\
    &= \underline{\left(2 x_{2}^{2}\right) \left(3 x_{2} + 4\right)} + \left(5 x_{1}^{2}\right) \left(2\right) \left(3\right) && (P_{1}) \text{ mulstep} \\
    &= \left(6 x_{2}^{3} + 8 x_{2}^{2}\right) + \underline{\left(5 x_{1}^{2}\right) \left(2\right)} \left(3\right) && (P_{2}) \text{ mulstep} \\
    &= \left(6 x_{2}^{3} + 8 x_{2}^{2}\right) + \underline{\left(10 x_{1}^{2}\right) \left(3\right)} && (P_{3}) \text{ mulstep} \\
    &= \underline{\left(6 x_{2}^{3} + 8 x_{2}^{2}\right) + \left(30 x_{1}^{2}\right)} && (P_{4}) \text{ sumstep} \\
    &= 6 x_{2}^{3} + 30 x_{1}^{2} + 8 x_{2}^{2} && (P_{5}) \text{ endpoint}
\end{align*}
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
