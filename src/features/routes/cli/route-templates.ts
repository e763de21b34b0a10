import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { packageFolder } from '../../../version.ts';

/** Addresses of the service of a template. */
interface TemplatePlace {
  /** The host that clients use. */
  readonly host: string;
  /** Address of the service; undefined for its usual port on this machine. */
  readonly url: string | undefined;
  /** The file of its credential; undefined for `/run/secrets/<service>`. */
  readonly file: string | undefined;
}

const folder = () => join(packageFolder(), 'examples', 'routes');

/** The names of the services that have a template. */
export function templateNames(): string[] {
  return readdirSync(folder())
    .map((file) => basename(file, '.yaml'))
    .toSorted();
}

/** The file of `examples/routes` for a service, at its place. */
export function routeTemplate(name: string, { host, url, file }: TemplatePlace): string {
  const text = readFileSync(join(folder(), `${name}.yaml`), 'utf8');
  return text
    .replaceAll(`${name}.example.org`, () => host)
    .replace(/"http:\/\/127\.0\.0\.1:\d+"/, (given) => (url === undefined ? given : JSON.stringify(url)))
    .replace(`"/run/secrets/${name}"`, (given) => (file === undefined ? given : JSON.stringify(file)));
}
