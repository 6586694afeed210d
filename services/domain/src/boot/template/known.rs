//! The lookups that templates need, and their results.

use std::collections::{BTreeMap, BTreeSet};

use super::{BootSet, SessionTemplate};
use crate::boot::template::image::{Contents, Listing, STORE_TYPE, Unreadable, ims_id};

/// Images to look up, each once however many boot sets share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Paths of manifests whose images are looked up in the store.
    pub paths: BTreeSet<String>,
    /// Ids of images that are looked up in the catalogue.
    pub ids: BTreeSet<String>,
}

impl Wanted {
    /// Returns the images of these boot sets.
    pub fn by<'a>(boot_sets: impl IntoIterator<Item = &'a BootSet>) -> Self {
        let mut wanted = Self::default();
        for boot_set in boot_sets {
            wanted.ids.extend(ims_id(&boot_set.path).map(str::to_owned));
            if boot_set.kind == STORE_TYPE {
                wanted.paths.insert(boot_set.path.clone());
            }
        }
        wanted
    }

    /// Returns the same without lookups in the store.
    #[must_use]
    pub fn in_catalogue(self) -> Self {
        Self { paths: BTreeSet::new(), ..self }
    }

    /// Returns the same without lookups in the catalogue.
    #[must_use]
    pub fn in_store(self) -> Self {
        Self { ids: BTreeSet::new(), ..self }
    }
}

/// Known images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Contents in the store, by the path of the manifest.
    pub contents: BTreeMap<String, Result<Contents, Unreadable>>,
    /// Entries of the catalogue, by the id of the image; `None`: there is no catalogue.
    pub listings: Option<BTreeMap<String, Listing>>,
}

impl Known {
    /// Adds the results of later lookups.
    pub fn add(&mut self, news: Self) {
        self.contents.extend(news.contents);
        match (&mut self.listings, news.listings) {
            (Some(listings), Some(news)) => listings.extend(news),
            (None, news @ Some(_)) => self.listings = news,
            (_, None) => {}
        }
    }

    /// Returns the part of `wanted` that is not known.
    #[must_use]
    pub fn lacks(&self, wanted: Wanted) -> Wanted {
        let Wanted { mut paths, mut ids } = wanted;
        paths.retain(|path| !self.contents.contains_key(path));
        ids.retain(|id| self.listings.as_ref().is_some_and(|listings| !listings.contains_key(id)));
        Wanted { paths, ids }
    }
}

/// Returns the names of the boot sets of `after` whose image, or its architecture or version, differs from that in
/// `before`. Only these need lookups when a template is changed (BOS reference 12, BUG-40).
pub fn with_new_images(before: &SessionTemplate, after: &SessionTemplate) -> BTreeSet<String> {
    let image = |set: &BootSet| {
        (
            set.path.clone(),
            set.kind.clone(),
            set.etag.clone().unwrap_or_default(),
            set.arch.unwrap_or_default(),
        )
    };
    let is_new =
        |(name, set): &(&String, &BootSet)| before.boot_sets.get(*name).map(image) != Some(image(set));
    after.boot_sets.iter().filter(is_new).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Arch,
            tests::{boot_set, template},
        },
        *,
    };

    fn texts<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
        texts.map(str::to_owned).into()
    }

    #[test]
    fn an_image_is_looked_up_once() {
        let at = |kind: &str, path: &str| BootSet {
            path: path.to_owned(),
            kind: kind.to_owned(),
            ..boot_set("n0")
        };
        let sets = [
            at("s3", "s3://b/i/manifest.json"),
            at("s3", "s3://b/i/manifest.json"),
            at("s3", "s3://other/i/manifest.json"),
            at("ims", "s3://b/j/manifest.json"),
            at("s3", "s3://b/manifest.json"),
            at("s3", "nonsense"),
        ];
        let wanted = Wanted::by(&sets);
        let paths =
            ["s3://b/i/manifest.json", "s3://other/i/manifest.json", "s3://b/manifest.json", "nonsense"];
        assert_eq!(wanted, Wanted { paths: texts(paths), ids: texts(["i", "j"]) });
        assert_eq!(wanted.clone().in_catalogue().paths, texts([]));
        assert_eq!(wanted.clone().in_store().ids, texts([]));
        let mut known = Known::default();
        assert_eq!(known.lacks(wanted.clone()), wanted.clone().in_store(), "there is no catalogue");
        let listings = BTreeMap::from([("i".to_owned(), Listing::Absent)]);
        known.add(Known { listings: Some(listings), ..Known::default() });
        known.add(Known {
            contents: [("nonsense".to_owned(), Ok(Contents::default()))].into(),
            ..Known::default()
        });
        let lacking = known.lacks(wanted);
        assert_eq!(lacking.ids, texts(["j"]));
        assert_eq!(lacking.paths, texts([paths[0], paths[1], paths[2]]));
    }

    #[test]
    fn only_a_change_of_its_image_makes_a_boot_set_worth_a_look() {
        let stored = || BootSet { arch: Some(Arch::X86), ..boot_set("n0") };
        let before = template([("a", stored()), ("b", stored())]);
        for (changed, expected) in [
            (stored(), texts([])),
            (BootSet { arch: None, ..stored() }, texts([])),
            (BootSet { etag: Some(String::new()), ..stored() }, texts([])),
            (BootSet { kernel_parameters: Some("quiet".to_owned()), ..boot_set("n1") }, texts([])),
            (BootSet { etag: Some("2".to_owned()), ..stored() }, texts(["b"])),
            (BootSet { path: "s3://boot-images/2/manifest.json".to_owned(), ..stored() }, texts(["b"])),
            (BootSet { kind: "ims".to_owned(), ..stored() }, texts(["b"])),
            (BootSet { arch: Some(Arch::Arm), ..stored() }, texts(["b"])),
        ] {
            let after = template([("a", stored()), ("b", changed)]);
            assert_eq!(with_new_images(&before, &after), expected, "{after:?}");
        }
        let more = template([("a", stored()), ("b", stored()), ("c", stored())]);
        assert_eq!(with_new_images(&before, &more), texts(["c"]));
        assert_eq!(with_new_images(&template([]), &before), texts(["a", "b"]));
    }
}
