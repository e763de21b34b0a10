import type { ListedPage } from '../page-list.ts';

/** Who has signed in, and where they are. */
export interface SignedIn {
  /** The name of their key. */
  readonly name: string;
  /** The pages that it may see. */
  readonly pages: readonly ListedPage[];
  /** The path of the address. */
  readonly here: string;
  /** Whether the page is the answer to a form. */
  readonly isAnswer: boolean;
}

/** The way to all pages, and out. */
export function Navigation({ root, person: { name, pages, here } }: { root: string; person: SignedIn }) {
  return (
    <header class="top">
      <a class="brand" href={root}>
        svc-api
      </a>
      <nav aria-label="Pages">
        {pages.map(({ path, title }) => (
          <a href={root + path} aria-current={here.includes(`/console/${path}`) ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <form method="post" action={`${root}sign-out`} class="who">
        <span title={`Signed in with the key ${name}`}>{name}</span>
        <button class="quiet">Sign out</button>
      </form>
    </header>
  );
}
