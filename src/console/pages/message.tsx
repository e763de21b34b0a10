import type { Assets } from '../assets.ts';
import { Layout } from '../parts/layout.tsx';

/** A page of a few words, for anybody. */
export function MessagePage({ assets, ...said }: { root: string; assets: Assets; title: string; message: string }) {
  return (
    <Layout title={said.title} root={said.root} assets={assets}>
      <Message {...said} />
    </Layout>
  );
}

/** A few words, and the way back to the console, for who may come from there. */
export function Message({ root, title, message }: { root?: string; title: string; message: string }) {
  return (
    <div class="narrow">
      <h1>{title}</h1>
      <p>{message}</p>
      {root !== undefined && (
        <p>
          <a href={root}>Back to the console</a>
        </p>
      )}
    </div>
  );
}

/** What a key sees that may see none of the pages. */
export function NothingToSee({ name }: { name: string }) {
  return (
    <div class="narrow">
      <h1>Nothing to see</h1>
      <p>
        The key {name} may see none of the pages. Sign in with one that has a permission for them, such as{' '}
        <code>API_KEY:READ_OWN</code>.
      </p>
    </div>
  );
}
