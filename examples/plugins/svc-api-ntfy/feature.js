import { readFile } from 'node:fs/promises';

/** Sends notices to a topic of ntfy, such as https://ntfy.example.org/keys. */
const ntfy = {
  open({ url, secretFile }) {
    return async ({ id, type, body }, { signal }) => {
      const { name, id: key } = JSON.parse(body).data;
      const token = secretFile && (await readFile(secretFile, 'utf8')).trim();
      const response = await fetch(url, {
        method: 'POST',
        // A topic of ntfy shows a repeated notice only once.
        headers: {
          Title: `svc-api: ${type}`,
          'X-Sequence-ID': id,
          ...(token && { Authorization: `Bearer ${token}` }),
        },
        body: key ? `${name} (${key})` : 'A notice to try the channel.',
        signal,
        redirect: 'error',
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`the answer was ${response.status}`);
    };
  },
};

/** @type {import('svc-api/feature').FeatureHook} */
const hook = async () => ({ name: 'svc-api-ntfy', notices: { ntfy: async () => ntfy } });
export default hook;
