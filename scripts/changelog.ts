const UNRELEASED = '## [Unreleased]\n';

/**
 * The changelog after a release: what stood under "Unreleased" stands under the version.
 * @param date `2026-01-31`
 * @throws Error if nothing is unreleased
 */
export function withVersion(text: string, version: string, date: string): string {
  if (unreleasedIn(text) === '') throw new Error('CHANGELOG.md has nothing under "Unreleased": there is no release.');
  return text.replace(UNRELEASED, () => `${UNRELEASED}\n## [${version}] - ${date}\n`);
}

/** What is not released yet. */
export function unreleasedIn(text: string): string {
  const [, rest = ''] = text.split(UNRELEASED);
  return rest.split(/^## \[/m, 1)[0]!.trim();
}

/** What a version has changed; undefined if the changelog does not have it. */
export function sectionOf(text: string, version: string): string | undefined {
  const section = text.split(/^(?=## \[)/m).find((each) => each.startsWith(`## [${version}] - `));
  return section?.split('\n').slice(1).join('\n').trim();
}
