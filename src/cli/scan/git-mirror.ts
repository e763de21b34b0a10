import { Buffer } from 'node:buffer';
import { hash } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathIn } from './folder.ts';
import type { GitFolders, GitProgram } from './git-program.ts';
import { readPlainFile } from '../input/plain-file.ts';
import type { Repository } from './repository.ts';

/** Larger ignore files are not used: more is read then. */
const MAX_RULES_BYTES = 1024 * 1024;
const MAX_INDEX_BYTES = 1024 * 1024 * 1024;
const SHA256_BYTES = 32;

/**
 * A repository of our own in a temporary folder, with copies of another one's index and ignore rules, for git to read.
 * Git never sees the other one: its configuration can name programs to run and files that block.
 */
export class GitMirror implements GitFolders {
  readonly gitDir: string;
  readonly workTree: string;
  readonly #program: GitProgram;
  readonly #folder: string;

  constructor(program: GitProgram, repository: Repository) {
    this.#program = program;
    this.#folder = mkdtempSync(join(tmpdir(), 'svc-api-scan-'));
    this.gitDir = join(this.#folder, 'git');
    this.workTree = join(this.#folder, 'tree');
    try {
      this.#create(repository);
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  /** The names of all tracked files and nested repositories, relative to the top; their bytes are as Latin-1. */
  async tracked(): Promise<string[]> {
    const list = ['ls-files', '--cached', '-z'];
    // A sparse index would need its objects otherwise; versions of git without them do not know the option.
    const names = await this.#program.run(this, [...list, '--sparse']).catch(() => this.#program.run(this, list));
    return namesIn(names);
  }

  /** Adds the ignore rules of a folder of the work tree. */
  addRules(folder: Buffer, name: string): void {
    const rules = readPlainFile(pathIn(folder, Buffer.from('.gitignore')), MAX_RULES_BYTES);
    if (!rules) return;
    const copy = Buffer.concat([Buffer.from(`${this.workTree}/`), Buffer.from(name, 'latin1')]);
    mkdirSync(copy, { recursive: true });
    writeFileSync(pathIn(copy, Buffer.from('.gitignore')), rules);
  }

  /** Which of these names the rules ignore, tracked or not. The name of a folder ends with a slash. */
  async ignored(names: readonly string[]): Promise<Set<string>> {
    if (names.length === 0) return new Set();
    // Names that begin with ":" would have another meaning.
    const input = Buffer.from(names.map((name) => `./${name}\0`).join(''), 'latin1');
    const args = ['check-ignore', '--no-index', '--stdin', '-z'];
    const output = await this.#program.run(this, args, { input, exits: [0, 1] });
    return new Set(namesIn(output).map((name) => name.slice(2)));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #create({ gitDir, commonDir }: Repository): void {
    for (const folder of ['objects', 'refs', 'info']) mkdirSync(join(this.gitDir, folder), { recursive: true });
    mkdirSync(this.workTree);
    writeFileSync(join(this.gitDir, 'HEAD'), 'ref: refs/heads/main\n');
    const exclude = readPlainFile(pathIn(commonDir, Buffer.from('info/exclude')), MAX_RULES_BYTES);
    if (exclude) writeFileSync(join(this.gitDir, 'info', 'exclude'), exclude);
    const index = this.#copyIndex(gitDir);
    const format = index && isSha256(index) ? 'sha256' : 'sha1';
    writeFileSync(
      join(this.gitDir, 'config'),
      `[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = ${format}\n`,
    );
  }

  #copyIndex(gitDir: Buffer): Buffer | undefined {
    const path = pathIn(gitDir, Buffer.from('index'));
    if (!lstatSync(path, { throwIfNoEntry: false })) return undefined; // Nothing was ever added.
    const index = readPlainFile(path, MAX_INDEX_BYTES);
    if (!index) throw new Error('its index is not a regular file');
    writeFileSync(join(this.gitDir, 'index'), index);
    for (const name of readdirSync(gitDir).filter((file) => /^sharedindex\.[0-9a-f]+$/.test(file))) {
      const shared = readPlainFile(pathIn(gitDir, Buffer.from(name)), MAX_INDEX_BYTES);
      if (shared) writeFileSync(join(this.gitDir, name), shared);
    }
    return index;
  }
}

/** Whether an index ends with its SHA-256, and not with its SHA-1. */
function isSha256(index: Buffer): boolean {
  return index.subarray(-SHA256_BYTES).toString('hex') === hash('sha256', index.subarray(0, -SHA256_BYTES), 'hex');
}

/** Splits a NUL-terminated list. */
function namesIn(list: Buffer): string[] {
  return list.toString('latin1').split('\0').slice(0, -1);
}
