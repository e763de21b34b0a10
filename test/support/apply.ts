import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestCli, testCli } from './cli.ts';
import type { Finished } from './process.ts';
import { namesIn } from './stored.ts';
import { tempFolder } from './temp.ts';

export interface TestApply {
  cli: TestCli;
  /** The file that `declare` writes. */
  file: string;
  /** A folder for secrets that does not exist yet. */
  secrets: string;
  declare(text: string): void;
  apply(args?: readonly string[]): Promise<Pick<Finished, 'stdout' | 'stderr' | 'code'>>;
  /** Applies with `--json`, which must not write to stderr. */
  json(...args: string[]): Promise<Record<string, unknown> & { code: number | string | null }>;
  names(): Promise<string[]>;
}

/** The built CLI with a store and a file of its own. */
export function testApply(): TestApply {
  const cli = testCli();
  const folder = tempFolder();
  const file = join(folder, 'keys.yaml');
  const apply: TestApply['apply'] = async (args = []) => {
    const { stdout, stderr, code } = await cli.run(['apikey', 'apply', '-f', file, ...args]);
    return { stdout, stderr, code };
  };
  return {
    cli,
    file,
    secrets: join(folder, 'new', 'secrets'),
    declare: (text) => writeFileSync(file, text),
    apply,
    async json(...args) {
      const { stdout, stderr, code } = await apply([...args, '--json']);
      assert.equal(stderr, '');
      return { code, ...(JSON.parse(stdout) as object) };
    },
    names: () => namesIn(cli.database),
  };
}
