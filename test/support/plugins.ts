import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT } from './process.ts';
import { tempFolder } from './temp.ts';

/** File contents by path. */
type Files = Readonly<Record<string, string>>;

/** Makes a plugin: a package with hooks. @param result the value that the hooks return, as JavaScript */
function makePlugin(name: string, result: string, hooks: readonly string[], manifest: object, files: Files): string {
  const folder = join(tempFolder(), name);
  mkdirSync(folder, { recursive: true });
  const hasCommands = Object.keys(files).some((path) => path.startsWith('commands/'));
  const oclif = {
    hooks: Object.fromEntries(hooks.map((hook) => [hook, './feature.js'])),
    ...(hasCommands && { commands: './commands' }),
  };
  if (hasCommands) {
    mkdirSync(join(folder, 'node_modules/@oclif'), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules/@oclif/core'), join(folder, 'node_modules/@oclif/core'));
  }
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name, version: '1.0.0', type: 'module', oclif, ...manifest }),
  );
  for (const [path, text] of Object.entries({ 'feature.js': `export default async () => (${result});\n`, ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

/** A user's data folder with plugins, as `plugins install` leaves them. */
export class DataFolder {
  readonly path = tempFolder();
  readonly #installed = new Map<string, string>();

  get env(): NodeJS.ProcessEnv {
    return { XDG_DATA_HOME: this.path, HOME: this.path };
  }

  /** @param manifest more fields of its package.json @param files its other files; those in `commands` are commands */
  install(
    name: string,
    result: string,
    hooks: readonly string[] = ['svc-api:feature'],
    manifest: object = {},
    files: Files = {},
  ): void {
    this.#installed.set(name, makePlugin(name, result, hooks, manifest, files));
    this.#write();
  }

  uninstall(name: string): void {
    this.#installed.delete(name);
    this.#write();
  }

  #write(): void {
    const folder = join(this.path, 'svc-api');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const plugins = Array.from(this.#installed.keys(), (name) => ({ type: 'user', name }));
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ oclif: { schema: 1, plugins } }));
    for (const [name, from] of this.#installed) {
      const to = join(folder, 'node_modules', name);
      mkdirSync(join(to, '..'), { recursive: true });
      symlinkSync(from, `${to}.new`);
      renameSync(`${to}.new`, to);
    }
  }
}
