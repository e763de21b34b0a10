import assert from 'node:assert/strict';
import { readCommandLine } from '../../../src/features/completion/cli/command-line.ts';

const env = { HOME: '/home/me', STORE: '/data/keys' };
const read = (line: string, breaks?: string) => readCommandLine(line, { env, breaks });

describe('a command line up to the cursor', () => {
  it('has the words that the shell would make of it', () => {
    const cases: Record<string, readonly string[]> = {
      'svc-api apikey show ': ['apikey', 'show', ''],
      'svc-api apikey show CI\\ de': ['apikey', 'show', 'CI de'],
      'svc-api apikey show "a \\"b\\" \\c" \'d\\e\' ': ['apikey', 'show', 'a "b" \\c', 'd\\e', ''],
      'svc-api a"b c"d': ['ab cd'],
      'svc-api --database ~/keys ~ x~': ['--database', '/home/me/keys', '/home/me', 'x~'],
      'svc-api $STORE/a "${STORE}" \'$STORE\' $(rm) $NOBODY': [
        '/data/keys/a',
        '/data/keys',
        '$STORE',
        '$(rm)',
        '$NOBODY',
      ],
      'true; other | svc-api x && svc-api y': ['y'],
      'svc-api "" ': ['', ''],
      '': [''],
      'svc-api x\\': ['x'],
    };
    const got = Object.fromEntries(
      Object.keys(cases).map((line) => {
        const { words, word } = read(line);
        return [line, [...words, word]];
      }),
    );
    assert.deepEqual(got, cases);
  });

  it('has the variables before the command', () => {
    const { variables, words, word } = read('A=1 B="two words" svc-api apikey C=');
    assert.deepEqual([variables, words, word], [{ A: '1', B: 'two words' }, ['apikey'], 'C=']);
  });

  it('finds the part of the last word that bash keeps', () => {
    const kept = (line: string, breaks = '"\'=:') => {
      const { word, kept: length, quote } = read(line, breaks);
      return [word.slice(0, length), quote];
    };
    assert.deepEqual(kept('svc-api CI\\ de'), ['', '']);
    assert.deepEqual(kept('svc-api "CI de'), ['', '"']);
    assert.deepEqual(kept('svc-api --name=CI'), ['--name=', '']);
    assert.deepEqual(kept("svc-api --name='CI"), ['--name=', "'"]);
    assert.deepEqual(kept('svc-api --x=DOCKER:RE'), ['--x=DOCKER:', '']);
    assert.deepEqual(kept('svc-api --x=DOCKER:RE', ''), ['', '']);
    assert.deepEqual(kept('svc-api a\\:b'), ['', '']);
  });
});
