import type { Child } from 'hono/jsx';
import type { Action } from '../../../keys/permissions/index.ts';
import type { Assets } from '../assets.ts';

/** The frame of a page. */
export interface Frame {
  /** Without the name of the service. */
  readonly title: string;
  /** Prefix of page addresses: see `Visit.root`. */
  readonly root: string;
  /** The signed-in person, if any. */
  readonly person?: SignedIn | undefined;
  /** Address that the page opens by itself. */
  readonly again?: string | undefined;
  /** Loads no script. */
  readonly isPlain?: boolean;
}

/** @param host of the service as browsers see it, if it has one of its own */
export function Layout({
  title,
  root,
  person,
  again,
  isPlain = false,
  assets,
  host,
  children,
}: Frame & { assets: Assets; host?: string; children?: Child }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        {again !== undefined && <meta http-equiv="refresh" content={`0; url=${again}`} />}
        <title>{`${title} · ${assets.brand}`}</title>
        <link rel="icon" type="image/svg+xml" href={`${root}assets/${assets.icon.name}`} />
        <link rel="stylesheet" href={`${root}assets/${assets.style.name}`} />
        {!isPlain && <script type="module" src={`${root}assets/${assets.script.name}`}></script>}
      </head>
      <body data-signed-in={person ? root : undefined} data-answer={person?.isAnswer ? '' : undefined}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <Header root={root} name={assets.brand} host={host} person={person} />
        <main id="main" tabindex={-1}>
          {children}
        </main>
      </body>
    </html>
  );
}

/** A page in the navigation. */
export interface ListedPage {
  /** Its address under `/console/`. */
  readonly path: string;
  readonly title: string;
  /** Shown to keys that have one of these permissions. */
  readonly needs: readonly `${string}:${Action}`[];
}

/** Pages in the order of the navigation. People start at the first one that their key can see. */
export const PAGES: readonly ListedPage[] = [
  { path: '', title: 'Home', needs: ['API_KEY:READ_OWN'] },
  { path: 'keys', title: 'Keys', needs: ['API_KEY:READ_OWN'] },
  { path: 'requests', title: 'Approvals', needs: ['API_KEY:CREATE_OWN'] },
  { path: 'audit-log', title: 'Audit log', needs: ['LOGS:READ_ANY'] },
  { path: 'routes', title: 'Routes', needs: ['CONFIG:READ_ANY'] },
  { path: 'limits', title: 'Limits', needs: ['CONFIG:READ_ANY'] },
  { path: 'health', title: 'Health', needs: ['INFO:READ_ANY'] },
  { path: 'me', title: 'My key', needs: ['ME:READ_OWN'] },
];

export interface SignedIn {
  readonly name: string;
  /** Pages that the key can see. */
  readonly pages: readonly ListedPage[];
  /** The path of the address. */
  readonly here: string;
  readonly isAnswer: boolean;
}

/** Shows the name and host of the service and, to a signed-in person, their key, the navigation and the way out. */
function Header({
  root,
  name: service,
  host,
  person,
}: {
  root: string;
  name: string;
  host: string | undefined;
  person: SignedIn | undefined;
}) {
  const brand = (
    <>
      <strong>{service}</strong> {host !== undefined && <span class="host">{host}</span>}
    </>
  );
  if (!person)
    return (
      <header class="top">
        <span class="brand">{brand}</span>
      </header>
    );
  const { name, pages, here } = person;
  return (
    <header class="top">
      <a class="brand" href={root}>
        {brand}
      </a>
      <form method="post" action={`${root}sign-out`} class="who">
        <span title={`Signed in with the key ${name}`}>
          <span class="as">Signed in as </span>
          <strong>{name}</strong>
        </span>
        <button class="quiet">Sign out</button>
      </form>
      <nav aria-label="Pages">
        {pages.map(({ path, title }) => (
          <a href={root + path} aria-current={isAt(here, path) ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
    </header>
  );
}

/** Checks whether an address is a page or below it. */
function isAt(here: string, path: string): boolean {
  return path === '' ? here.endsWith('/console/') : here.includes(`/console/${path}`);
}

/** A page of one column. @param back the page that it belongs to, for a link above the title */
export function Panel({
  title,
  back,
  width,
  children,
}: {
  title: string;
  back?: { readonly to: string; readonly name: string } | undefined;
  /** Default: that of the window. */
  width?: 'narrow' | 'medium';
  children?: Child;
}) {
  return (
    <div class={width}>
      {back && (
        <p class="back">
          <a href={back.to}>← {back.name}</a>
        </p>
      )}
      <h1>{title}</h1>
      {children}
    </div>
  );
}

/** A part of a page. @param aside shown beside its title */
export function Card({
  title,
  id = title.toLowerCase().replaceAll(' ', '-'),
  aside,
  children,
}: {
  title: string;
  id?: string;
  aside?: Child;
  children?: Child;
}) {
  return (
    <section class="card" aria-labelledby={id}>
      <div class="head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** A link for people who come from the console. */
export function toConsole(root: string) {
  return { to: root, text: 'Back to the console' };
}

/** A message, with a link to go on. */
export function Message({
  title,
  message,
  link,
}: {
  title: string;
  message: string;
  link?: { readonly to: string; readonly text: string };
}) {
  return (
    <Panel width="narrow" title={title}>
      <p>{message}</p>
      {link && (
        <p>
          <a href={link.to}>{link.text}</a>
        </p>
      )}
    </Panel>
  );
}
