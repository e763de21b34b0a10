import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { tempFolder } from '../support/temp.ts';

describe('the configuration', () => {
  /** The faults of a file, without its path. */
  const faults = async (text: string) => {
    const file = join(tempFolder(), 'svc-api.yaml');
    writeFileSync(file, text);
    let message = '';
    await assert.rejects(loadConfig({ file, env: {} }), (error: Error & { code?: string }) => {
      ({ message } = error);
      return error.code === 'CONFIG_INVALID';
    });
    return message.replaceAll(`${file}:`, '').split('\n');
  };

  it('is refused soon, however much is wrong with it or hidden in it', async () => {
    const bomb = [
      'a: &a [x, x]',
      ...'bcdefghijklmnop'.split('').map((name, index) => {
        const last = 'abcdefghijklmnop'[index];
        return `${name}: &${name} [${`*${last}, `.repeat(9)}*${last}]`;
      }),
    ];
    assert.match((await faults(bomb.join('\n'))).join('\n'), /aliases expand to too much/);
    const towers = ['[', '- ', '{a: ', '? ', 'a: '].map((level) => level.repeat(20_000));
    towers.push(Array.from({ length: 1500 }, (_, index) => `${' '.repeat(index)}a:\n`).join(''));
    for (const tower of [...towers, '['.repeat(100)])
      assert.deepEqual(await faults(tower), ['1:1: The text is nested too deeply: at most 100 levels are allowed.']);
    assert.deepEqual(await faults('roles: &a { X: *a }'), ['1:16: This alias is within what it stands for, "&a".']);
    const many = `roles: { EDITOR: [${'DOKER:REED_ANY, '.repeat(10_000)}] }`;
    const twice = 'a: 1\n'.repeat(200_000);
    for (const text of [many, twice]) assert.match((await faults(text)).at(-1)!, /more not shown/);
    const names = Array.from({ length: 1001 }, (_, index) => `R${index}`).join(', ');
    assert.match((await faults(`resources: [${names}]`))[0]!, /There are 1001 resources; at most 1000 are allowed/);
  });
});
