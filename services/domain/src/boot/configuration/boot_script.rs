//! The script for a node's boot firmware, where no other service writes boot scripts: iPXE fetches kernel and initial
//! RAM disk and starts them (BOS reference 6.5, peer facts).
//!
//! iPXE has no quotes. It cuts a line at white space, ends a command at `||`, `&&`, `;` and `#` where they begin a
//! word, and only then replaces `${name}` by the setting of that name. So a parameter cannot hold white space, and a
//! word that would end the command gets an unset setting in front of it. Settings in kernel parameters work as they do
//! with other boot script services.

use std::fmt::Write;

use crate::boot::{
    component::artifacts::BootArtifacts,
    template::image::{Location, NoLocation},
};

/// Seconds until firmware asks again after a failed boot: long enough not to overload a busy store, short enough that
/// no operator walks to the machine.
const PAUSE: u32 = 10;

/// Setting that no firmware has, which is replaced by an empty text.
const NOTHING: &str = "${not-a-command}";

/// Node that runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient<'a> {
    /// Component id, which the node learns from its command line.
    pub id: &'a str,
    /// Numeric node id, if the node has one.
    pub nid: Option<u32>,
    /// Token that the node is to report, of the artifacts in the script.
    pub token: &'a str,
}

/// Addresses from which nodes fetch artifacts and scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources<'a> {
    /// Base to which `/BUCKET/KEY` of an `s3://` path is added; empty: none.
    pub artifacts: &'a str,
    /// Base of the address of boot scripts.
    pub scripts: &'a str,
}

/// Reason why there is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoScript {
    /// The boot data have no kernel.
    #[error("no kernel is named")]
    NoKernel,
    /// The artifacts have no address for nodes.
    #[error("boot_parameters.built_in.artifact_url is not set, and nodes cannot fetch '{0}' without")]
    NoSource(String),
    /// The path is not an address.
    #[error("'{path}' {reason}")]
    BadPath {
        /// Path of kernel or initial RAM disk.
        path: String,
        /// Defect of the path.
        reason: NoLocation,
    },
    /// Firmware would cut or misread the parameters.
    #[error("the kernel parameters hold the control character U+{0:04X}")]
    ControlCharacter(u32),
    /// Firmware would cut or misread the id.
    #[error("the component id holds '{0}', which cannot be put on a kernel command line")]
    BadId(char),
}

impl NoScript {
    /// Returns whether the data are at fault, and not the settings of the site.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::NoSource(_) => false,
            Self::NoKernel | Self::BadPath { .. } | Self::ControlCharacter(_) | Self::BadId(_) => true,
        }
    }
}

/// Returns the script by which `recipient` boots `artifacts`.
///
/// If any step fails, firmware waits and asks for the script again, so that a boot continues by itself once the store
/// or the network works again, with the boot data of that time.
///
/// # Errors
/// When these data cannot be booted; the error has the reason.
pub fn script(
    artifacts: &BootArtifacts,
    recipient: &Recipient<'_>,
    sources: &Sources<'_>,
) -> Result<String, NoScript> {
    let [kernel, initrd, parameters] =
        [&artifacts.kernel, &artifacts.initrd, &artifacts.kernel_parameters].map(|text| text.as_deref());
    let kernel = kernel.filter(|path| !path.is_empty()).ok_or(NoScript::NoKernel)?;
    let kernel = address(kernel, sources.artifacts)?;
    let initrd = initrd.filter(|path| !path.is_empty());
    let initrd = initrd.map(|path| address(path, sources.artifacts)).transpose()?;
    let line = command_line(parameters.unwrap_or_default(), recipient, initrd.is_some())?;
    let mut script =
        String::from("#!ipxe\n# Images of an attempt before must not be taken for these.\nimgfree\n");
    write_line(&mut script, format_args!("kernel --name kernel {kernel} {line} || goto again"));
    if let Some(initrd) = initrd {
        write_line(&mut script, format_args!("initrd --name initrd {initrd} || goto again"));
    }
    write_line(&mut script, format_args!("boot || goto again"));
    let again = script_address(sources.scripts, recipient.id);
    write_line(&mut script, format_args!(":again\nsleep {PAUSE}"));
    write_line(&mut script, format_args!("chain --replace --autofree {again} || goto again"));
    Ok(script)
}

fn write_line(script: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(script, "{line}").expect("a string takes every text");
}

/// Returns the address of the script of a component, below `base`.
fn script_address(base: &str, id: &str) -> String {
    format!("{}/boot/v1/bootscript?name={}", base.trim_end_matches('/'), encoded(id, ""))
}

/// Returns the address at which a node fetches the object at `path`. An HTTP address is kept.
///
/// # Errors
/// When it cannot be fetched; the error has the reason.
fn address(path: &str, base: &str) -> Result<String, NoScript> {
    let scheme = path.split_once("://").map_or("", |(scheme, _)| scheme);
    if ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        // All other characters in the address may be intended: signatures, and settings such as `${next-server}`.
        return Ok(encoded(path, "!#$%&'()*+,-./:;=?@[]_~{}"));
    }
    let Location { bucket, key } =
        Location::parse(path).map_err(|reason| NoScript::BadPath { path: path.to_owned(), reason })?;
    if base.is_empty() {
        return Err(NoScript::NoSource(path.to_owned()));
    }
    let (key, query) = key.split_once('?').map_or((key, None), |(key, query)| (key, Some(query)));
    let mut address = format!("{}/{}/{}", base.trim_end_matches('/'), encoded(bucket, ""), encoded(key, "/"));
    if let Some(query) = query {
        address = format!("{address}?{}", encoded(query, "=&%+/"));
    }
    Ok(address)
}

/// Returns `text` with every byte percent-encoded but letters, digits, `-._~` and those of `kept`.
fn encoded(text: &str, kept: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.as_bytes().contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("a string takes every text");
        }
    }
    encoded
}

/// Returns the kernel command line, in words that firmware passes on unchanged.
///
/// The identity and the token of the node are added as boot script services do, and a token that was written into the
/// parameters is left out: it belongs to another boot.
fn command_line(parameters: &str, recipient: &Recipient<'_>, initrd: bool) -> Result<String, NoScript> {
    let control = |c: &char| c.is_control() && !c.is_ascii_whitespace() && *c != '\u{b}';
    if let Some(control) = parameters.chars().find(control) {
        return Err(NoScript::ControlCharacter(control.into()));
    }
    if let Some(bad) = recipient.id.chars().find(|c| !c.is_ascii_graphic() || *c == '$') {
        return Err(NoScript::BadId(bad));
    }
    let given = parameters.split([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']).filter(|word| !word.is_empty());
    let given: Vec<_> = given
        .filter(|word| !(word.starts_with("bss_referral_token=") || initrd && word.starts_with("initrd=")))
        .collect();
    let lacks = |name: &str| !given.iter().any(|word| word.starts_with(name));
    let mut words = Vec::new();
    // UEFI kernels take the image with this name as their initial RAM disk.
    words.extend(initrd.then(|| "initrd=initrd".to_owned()));
    words.extend(given.iter().map(|word| protected(word)));
    words.extend(lacks("xname=").then(|| format!("xname={}", recipient.id)));
    words.extend(recipient.nid.filter(|_| lacks("nid=")).map(|nid| format!("nid={nid}")));
    words.push(format!("bss_referral_token={}", recipient.token));
    Ok(words.join(" "))
}

fn protected(word: &str) -> String {
    let ends_command = ["||", "&&", ";"].contains(&word) || word.starts_with('#');
    if ends_command { format!("{NOTHING}{word}") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const SOURCES: Sources<'_> = Sources { artifacts: "http://store:9000/", scripts: "http://gateway:7700/" };

    fn artifacts(kernel: &str, parameters: &str, initrd: &str) -> BootArtifacts {
        let text = |text: &str| Some(text.into());
        BootArtifacts {
            kernel: text(kernel),
            kernel_parameters: text(parameters),
            initrd: text(initrd),
            timestamp: None,
        }
    }

    const NODE: Recipient<'_> = Recipient { id: "x3000c0s1b0n0", nid: Some(17), token: "t-1" };

    #[test]
    fn a_script_boots_and_asks_again_when_that_fails() {
        let both = artifacts(
            "s3://boot-images/i-1/kernel",
            "console=ttyS0,115200 quiet",
            "s3://boot-images/i-1/initrd",
        );
        let kernel_only = artifacts("https://host/kernel?signature=a%2Fb", "", "");
        let nobody = Recipient { nid: None, ..NODE };
        let told =
            script(&both, &NODE, &SOURCES).unwrap() + &script(&kernel_only, &nobody, &SOURCES).unwrap();
        expect![[r##"
            #!ipxe
            # Images of an attempt before must not be taken for these.
            imgfree
            kernel --name kernel http://store:9000/boot-images/i-1/kernel initrd=initrd console=ttyS0,115200 quiet xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1 || goto again
            initrd --name initrd http://store:9000/boot-images/i-1/initrd || goto again
            boot || goto again
            :again
            sleep 10
            chain --replace --autofree http://gateway:7700/boot/v1/bootscript?name=x3000c0s1b0n0 || goto again
            #!ipxe
            # Images of an attempt before must not be taken for these.
            imgfree
            kernel --name kernel https://host/kernel?signature=a%2Fb xname=x3000c0s1b0n0 bss_referral_token=t-1 || goto again
            boot || goto again
            :again
            sleep 10
            chain --replace --autofree http://gateway:7700/boot/v1/bootscript?name=x3000c0s1b0n0 || goto again
        "##]]
        .assert_eq(&told);
    }

    #[test]
    fn parameters_reach_the_kernel_as_words() {
        let rows = [
            "",
            "  a \t b\r\nc\n",
            "a || reboot",
            "a ; reboot",
            "a && reboot # not a comment",
            "a|| b; c&& d#",
            "#first",
            r"a\",
            r#"dyndbg="file a +p" b='x'"#,
            "--option -v",
            "spire_join_token=${SPIRE_JOIN_TOKEN} BOOTIF=01-${net0/mac:hexhyp}",
            "initrd=other.img initrdx=1",
            "xname=x9 nid=1 bss_referral_token=old",
            "nidx=2 xnames=3",
            "ümlaut=ß",
            "a\u{a0}b",
            "a\u{0}b",
            "a\u{1b}[2Jb",
            "a\u{7f}b",
            "a\u{85}b",
        ];
        let told: String = rows
            .iter()
            .map(|row| match command_line(row, &NODE, true) {
                Ok(line) => format!("{row:?}\n    {line}\n"),
                Err(error) => format!("{row:?}\n    no: {error}\n"),
            })
            .collect();
        expect![[r##"
            ""
                initrd=initrd xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "  a \t b\r\nc\n"
                initrd=initrd a b c xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "a || reboot"
                initrd=initrd a ${not-a-command}|| reboot xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "a ; reboot"
                initrd=initrd a ${not-a-command}; reboot xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "a && reboot # not a comment"
                initrd=initrd a ${not-a-command}&& reboot ${not-a-command}# not a comment xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "a|| b; c&& d#"
                initrd=initrd a|| b; c&& d# xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "#first"
                initrd=initrd ${not-a-command}#first xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "a\\"
                initrd=initrd a\ xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "dyndbg=\"file a +p\" b='x'"
                initrd=initrd dyndbg="file a +p" b='x' xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "--option -v"
                initrd=initrd --option -v xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "spire_join_token=${SPIRE_JOIN_TOKEN} BOOTIF=01-${net0/mac:hexhyp}"
                initrd=initrd spire_join_token=${SPIRE_JOIN_TOKEN} BOOTIF=01-${net0/mac:hexhyp} xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "initrd=other.img initrdx=1"
                initrd=initrd initrdx=1 xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "xname=x9 nid=1 bss_referral_token=old"
                initrd=initrd xname=x9 nid=1 bss_referral_token=t-1
            "nidx=2 xnames=3"
                initrd=initrd nidx=2 xnames=3 xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "ümlaut=ß"
                initrd=initrd ümlaut=ß xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "a\u{a0}b"
                initrd=initrd a b xname=x3000c0s1b0n0 nid=17 bss_referral_token=t-1
            "a\0b"
                no: the kernel parameters hold the control character U+0000
            "a\u{1b}[2Jb"
                no: the kernel parameters hold the control character U+001B
            "a\u{7f}b"
                no: the kernel parameters hold the control character U+007F
            "a\u{85}b"
                no: the kernel parameters hold the control character U+0085
        "##]].assert_eq(&told);
    }

    #[test]
    fn ids_that_would_end_a_word_are_no_ids_to_firmware() {
        for (id, bad) in [("x 1", ' '), ("x\n1", '\n'), ("x${net0/mac}", '$'), ("knötchen", 'ö')] {
            let node = Recipient { id, ..NODE };
            assert_eq!(command_line("", &node, false), Err(NoScript::BadId(bad)), "{id}");
        }
    }

    #[test]
    fn paths_become_addresses() {
        let rows = [
            "s3://boot-images/i-1/kernel",
            "S3://b/a b/%41/ü/#?x=1&y=a b",
            "s3://b/${net0/ip}/k",
            "s3://b/k?versionId=1",
            "http://${next-server}/k",
            "HTTPS://host/k",
            "http://host/a b\nreboot",
            "s3://b",
            "s3://b/../k",
            "tftp://host/k",
            "/srv/kernel",
        ];
        let told: String = rows
            .iter()
            .map(|path| match address(path, SOURCES.artifacts) {
                Ok(address) => format!("{path:?}: {address}\n"),
                Err(error) => format!("{path:?}: no, {error}\n"),
            })
            .collect();
        expect![[r#"
            "s3://boot-images/i-1/kernel": http://store:9000/boot-images/i-1/kernel
            "S3://b/a b/%41/ü/#?x=1&y=a b": http://store:9000/b/a%20b/%2541/%C3%BC/%23?x=1&y=a%20b
            "s3://b/${net0/ip}/k": http://store:9000/b/%24%7Bnet0/ip%7D/k
            "s3://b/k?versionId=1": http://store:9000/b/k?versionId=1
            "http://${next-server}/k": http://${next-server}/k
            "HTTPS://host/k": HTTPS://host/k
            "http://host/a b\nreboot": http://host/a%20b%0Areboot
            "s3://b": no, 's3://b' is not of the form s3://BUCKET/KEY
            "s3://b/../k": no, 's3://b/../k' has a part '..', which stands for another place
            "tftp://host/k": no, 'tftp://host/k' is not of the form s3://BUCKET/KEY
            "/srv/kernel": no, '/srv/kernel' is not of the form s3://BUCKET/KEY
        "#]]
        .assert_eq(&told);
        let nowhere = address("s3://b/k", "").unwrap_err();
        expect![
            "boot_parameters.built_in.artifact_url is not set, and nodes cannot fetch 's3://b/k' without"
        ]
        .assert_eq(&nowhere.to_string());
        assert!(!nowhere.is_refusal());
    }

    #[test]
    fn nothing_is_booted_without_a_kernel() {
        assert_eq!(script(&artifacts("", "p", "i"), &NODE, &SOURCES), Err(NoScript::NoKernel));
        assert_eq!(script(&BootArtifacts::default(), &NODE, &SOURCES), Err(NoScript::NoKernel));
    }
}
