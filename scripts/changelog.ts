const UNRELEASED = '## [Unreleased]\n';

/**
 * The changelog after a release, with the changes under "Unreleased" moved to the version.
 * @param date `2026-01-31`
 * @throws Error if nothing is unreleased
 */
export function withVersion(text: string, version: string, date: string): string {
  if (unreleasedIn(text) === '') throw new Error('CHANGELOG.md has nothing under "Unreleased": there is no release.');
  return text.replace(UNRELEASED, () => `${UNRELEASED}\n## [${version}] - ${date}\n`);
}

/** The unreleased changes. */
export function unreleasedIn(text: string): string {
  const [, rest = ''] = text.split(UNRELEASED);
  return rest.split(/^## \[/m, 1)[0]!.trim();
}

/** The changes of a version; undefined if it is not in the changelog. */
export function sectionOf(text: string, version: string): string | undefined {
  const section = text.split(/^(?=## \[)/m).find((each) => each.startsWith(`## [${version}] - `));
  return section?.split('\n').slice(1).join('\n').trim();
}
