use std::fmt::Write as _;

use expect_test::expect;

use super::*;

#[test]
fn sets_name_nodes_or_the_first_defect() {
    let mut rows = String::new();
    for text in [
        "x1000c0s0b0n0",
        "X1000c00s0b0n0",
        "x1000c[0-1]s[0-1]b0n0",
        "x1000c0s[08-11]b0n0",
        "nid[008-010,12]",
        "nid[8-10]",
        "x1c0s0b0n[0-3],!x1c0s0b0n[1-2]",
        "x1c0s0b0n[0-3],&x1c0s0b0n2",
        "a,b,a",
        " a , b ",
        "Compute,!X1c0s0b0n0",
        "a[0-1][0-1]",
        "a[3-3]z",
        "",
        " ",
        "a,",
        "a,,b",
        "!a",
        "&a",
        "a,!",
        "a[0-",
        "a[0-1",
        "a]",
        "a[]",
        "a[1,]",
        "a[-1]",
        "a[1-]",
        "a[3-1]",
        "a[1-2-3]",
        "a[x]",
        "a[[1]]",
        "a[1234567890]",
        "a b",
        "a,&b[0-1]",
        "a[0-999]b[0-999],b",
        "a[0-999999999][0-999999999][0-999999999]",
        "ä[0-1],ä!",
    ] {
        let outcome = NodeSet::parse(text).map(|set| format!("{} ({})", set.names().join(" "), set.limit()));
        let outcome = outcome.map(|names| names.chars().take(80).collect::<String>());
        writeln!(rows, "{text}: {}", outcome.unwrap_or_else(|error| error.to_string())).unwrap();
    }
    expect![[r#"
        x1000c0s0b0n0: x1000c0s0b0n0 (x1000c0s0b0n0)
        X1000c00s0b0n0: x1000c0s0b0n0 (x1000c0s0b0n0)
        x1000c[0-1]s[0-1]b0n0: x1000c0s0b0n0 x1000c0s1b0n0 x1000c1s0b0n0 x1000c1s1b0n0 (x1000c0s0b0n0,x1000c0s1
        x1000c0s[08-11]b0n0: x1000c0s8b0n0 x1000c0s9b0n0 x1000c0s10b0n0 x1000c0s11b0n0 (x1000c0s8b0n0,x1000c0
        nid[008-010,12]: nid008 nid009 nid010 nid12 (nid008,nid009,nid010,nid12)
        nid[8-10]: nid8 nid9 nid10 (nid8,nid9,nid10)
        x1c0s0b0n[0-3],!x1c0s0b0n[1-2]: x1c0s0b0n0 x1c0s0b0n3 (x1c0s0b0n0,x1c0s0b0n1,x1c0s0b0n2,x1c0s0b0n3,!x1c0s0b0n1,!
        x1c0s0b0n[0-3],&x1c0s0b0n2: x1c0s0b0n2 (x1c0s0b0n0,x1c0s0b0n1,x1c0s0b0n2,x1c0s0b0n3,&x1c0s0b0n2)
        a,b,a: a b (a,b,a)
         a , b : a b (a,b)
        Compute,!X1c0s0b0n0: Compute (Compute,!x1c0s0b0n0)
        a[0-1][0-1]: a00 a01 a10 a11 (a00,a01,a10,a11)
        a[3-3]z: a3z (a3z)
        : a name is missing (character 1)
         : a name is missing (character 1)
        a,: a name is missing (character 3)
        a,,b: a name is missing (character 3)
        !a: there is nothing before this to select from (character 1)
        &a: there is nothing before this to select from (character 1)
        a,!: a name is missing (character 4)
        a[0-: the bracket is not closed (character 2)
        a[0-1: the bracket is not closed (character 2)
        a]: the bracket was not opened (character 2)
        a[]: a number is missing (character 3)
        a[1,]: a number is missing (character 5)
        a[-1]: a number is missing (character 3)
        a[1-]: a number is missing (character 5)
        a[3-1]: the range ends below its beginning (character 3)
        a[1-2-3]: brackets hold numbers such as 0-3,7 (character 6)
        a[x]: brackets hold numbers such as 0-3,7 (character 3)
        a[[1]]: the bracket was not opened (character 6)
        a[1234567890]: the number has more than 9 digits (character 3)
        a b: no name has this character (character 2)
        a,&b[0-1]: & takes one name (character 3)
        a[0-999]b[0-999],b: these are more than 1000000 nodes (character 18)
        a[0-999999999][0-999999999][0-999999999]: these are more than 1000000 nodes (character 1)
        ä[0-1],ä!: no name has this character (character 9)
    "#]].assert_eq(&rows);
}

#[test]
fn long_names_are_refused() {
    let error = NodeSet::parse(&format!("a,{}[0-1]", "x".repeat(LONGEST_NAME))).unwrap_err();
    assert_eq!(error, NodeSetDefect::LongName.at(2));
    assert!(NodeSet::parse(&"x".repeat(LONGEST_NAME)).is_ok());
}

#[test]
fn as_many_nodes_as_are_allowed_are_taken() {
    assert_eq!(NodeSet::parse("a[0-999]b[0-999]").map(|set| set.names().len()), Ok(MOST_NODES));
}
