import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { tempFolder } from './temp.ts';

/** The faults of a configuration, with lines and columns. */
export async function faultsIn(text: string): Promise<string[]> {
  const file = join(tempFolder(), 'svc-api.yaml');
  writeFileSync(file, text);
  try {
    await loadConfig({ file, env: {} });
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'CONFIG_INVALID');
    return (error as Error).message.replaceAll(`${file}:`, '').split('\n');
  }
  return [];
}

/** Tests that each text is refused with faults that start with these texts. */
export function itRefuses(texts: readonly (readonly [text: string, ...faults: [string, ...string[]]])[]): void {
  for (const [text, ...expected] of texts)
    it(`refuses ${JSON.stringify(text)}`, async () => {
      const found = await faultsIn(text);
      for (const [index, fault] of expected.entries())
        assert.ok(found[index]?.startsWith(fault), `${found.join('\n')}, not ${fault}`);
      // A misspelled field causes no further faults.
      if (expected[0].includes('is not a field. Did you mean')) assert.equal(found.length, expected.length);
    });
}
