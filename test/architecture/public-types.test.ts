import assert from 'node:assert/strict';
import { publicNames } from '../../scripts/library-surface.ts';

/** The maximum of exported functions, classes and constants, so that a reader can learn them all. */
const MOST = 40;

describe('the library', () => {
  it('has a surface that can be learned: names that say what they are', () => {
    const names = publicNames();
    assert.ok(
      names.some(({ name }) => name === 'openKeys') && names.some(({ name }) => name === 'AuthenticatedRequest'),
    );
    const values = names.filter(({ text }) => !/^(?:export )?(?:interface|type) /.test(text));
    assert.ok(values.length <= MOST, `${values.length} names`);
    assert.deepEqual(
      names.filter(({ meaning }) => meaning === ''),
      [],
    );
  });

  it('shows the fields that features add to its types', () => {
    const text = (asked: string) => publicNames().find(({ name }) => name === asked)!.text;
    assert.match(text('CatalogAdditions'), /^ +consent\?: /m);
    assert.match(text('CreateAppOptions'), /^ +clients\?: /m);
  });

  it('calls a secret or the path of a private key "key", and an API key "apiKey"', () => {
    const members = publicNames().flatMap(({ text }) =>
      Array.from(text.matchAll(/^ +(?:readonly |get )*key(?:\?|\(\))?: (.+)$/gm), ([, type]) => type),
    );
    assert.ok(members.length > 2);
    // A Standard Schema issue has the keys of a path.
    const allowed = new Set<string | undefined>(['string;', 'PropertyKey;']);
    assert.deepEqual(
      members.filter((type) => !allowed.has(type)),
      [],
    );
  });
});
