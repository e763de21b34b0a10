import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describeLikeness } from '../../../src/keys/key/skeleton.ts';

describe('the skeleton of a name', () => {
  const SKELETONS = {
    Admin: 'Adrnin',
    '\u0410dmin': 'Adrnin',
    '\uff21\u{1d41d}min': 'Adrnin',
    l1I: 'lll',
    'Caf\u00e9': 'Cafe\u0301',
    '\u00bd': 'l\u20442',
    '\ufb01': 'fi',
    日本: '日本',
    '': '',
  };

  it('is the same whether or not its characters were looked up before', async () => {
    // A fresh copy of the module, whose cache is empty.
    const path = `../../../src/keys/key/skeleton.ts?${randomUUID()}`;
    const { computeSkeleton } = (await import(path)) as typeof import('../../../src/keys/key/skeleton.ts');
    for (const _time of ['first', 'second'])
      for (const [name, skeleton] of Object.entries(SKELETONS)) assert.equal(computeSkeleton(name), skeleton);
  });
});

describe('the likeness of two names', () => {
  it('is shown with the characters that differ, if each has some of its own', () => {
    const same = (name: string, other: string) => `The name "${name}" looks like that of the API key "${other}"`;
    assert.equal(
      describeLikeness('bum', 'burn'),
      `${same('bum', 'burn')}: it has "m" (U+006D) in place of "r" (U+0072) and "n" (U+006E).`,
    );
    assert.equal(describeLikeness('l1', '1l'), `${same('l1', '1l')}.`);
    assert.equal(describeLikeness('l1', 'll'), `${same('l1', 'll')}.`);
    assert.equal(describeLikeness('ll', 'l1'), `${same('ll', 'l1')}.`);
  });
});
