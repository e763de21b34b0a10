import type { Child } from 'hono/jsx';
import type { Assets } from '../assets.ts';
import { Navigation, type SignedIn } from './navigation.tsx';

/** What stands around the content of every page. */
export function Layout({
  title,
  root,
  assets,
  person,
  again,
  isPlain = false,
  children,
}: {
  title: string;
  root: string;
  assets: Assets;
  /** Undefined before somebody has signed in. */
  person?: SignedIn;
  /** What is opened in its place at once. */
  again?: string;
  /** Whether it runs no script. */
  isPlain?: boolean;
  children?: Child;
}) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <meta name="robots" content="noindex" />
        <meta name="color-scheme" content="light dark" />
        {again !== undefined && <meta http-equiv="refresh" content={`0; url=${again}`} />}
        <title>{`${title} · svc-api`}</title>
        <link rel="icon" type="image/svg+xml" href={`${root}assets/${assets.icon.name}`} />
        <link rel="stylesheet" href={`${root}assets/${assets.style.name}`} />
        {!isPlain && <script type="module" src={`${root}assets/${assets.script.name}`}></script>}
      </head>
      <body data-signed-in={person ? root : undefined} data-answer={person?.isAnswer ? '' : undefined}>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        {person && <Navigation root={root} person={person} />}
        <main id="main" tabindex={-1}>
          {children}
        </main>
      </body>
    </html>
  );
}
