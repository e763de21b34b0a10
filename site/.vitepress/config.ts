import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { renderMermaidSVG } from 'beautiful-mermaid';
import GithubSlugger from 'github-slugger';
import { defineConfig, type MarkdownOptions } from 'vitepress';

/** The site has the documents of the repository as they are, at their paths. */
const root = fileURLToPath(new URL('../..', import.meta.url));
const { version, description } = JSON.parse(read('package.json')) as { version: string; description: string };

/** Files that pages link to and that are no pages. They are copied to the site. */
const linked = new Set<string>();

export default defineConfig({
  srcDir: '..',
  srcExclude: ['!(docs|examples)/**/*.md', '!(README|CHANGELOG|PERFORMANCE|SECURITY|CONTRIBUTING|ARCHITECTURE).md'],
  rewrites: (path) => asPage(path),
  title: 'svc-api',
  description,
  lang: 'en',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: (text) => new GithubSlugger().slug(text) },
    languageAlias: { caddyfile: 'nginx', haproxy: 'ini', hcl: 'ini' },
    config: adapt,
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Documentation', link: '/docs/' },
      { text: 'Examples', link: '/examples/' },
      { text: version, items: [{ text: 'Changelog', link: '/CHANGELOG' }] },
    ],
    sidebar: sidebar(),
  },
  buildEnd({ outDir, pages }) {
    for (const path of linked) cpSync(join(root, path), join(outDir, path), { recursive: true });
    for (const page of pages) copyText(page, join(outDir, asPage(page)));
    writeFileSync(join(outDir, 'llms.txt'), listForAgents());
  },
});

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The README of a folder is its first page. */
function asPage(path: string): string {
  return path.replace(/(^|\/)README\.md/, '$1index.md');
}

/** Lets links lead to pages and copied files of the site, and draws diagrams. */
function adapt(md: Parameters<NonNullable<MarkdownOptions['config']>>[0]): void {
  const fence = md.renderer.rules.fence!;
  md.renderer.rules.fence = (tokens, at, ...others) => {
    const { info, content } = tokens[at]!;
    return info === 'mermaid' ? drawn(content) : fence(tokens, at, ...others);
  };
  md.core.ruler.push('links', ({ tokens, env }) => {
    const { relativePath } = env as { relativePath: string };
    for (const token of tokens.flatMap((each) => [each, ...(each.children ?? [])])) {
      // Vite takes other sources for names of packages.
      if (token.type.startsWith('html_'))
        token.content = token.content.replaceAll(/(src|srcset)="(?=\w+\/)/g, '$1="./');
      const href = token.attrGet('href');
      if (href === null || /^([a-z]+:|#|\/)/.test(href)) continue;
      const [path = '', anchor] = href.split('#');
      const target = join(dirname(relativePath), path);
      if (path.endsWith('.md')) token.attrSet('href', asPage(path) + (anchor === undefined ? '' : `#${anchor}`));
      else if (existsSync(join(root, target)) && statSync(join(root, target)).isFile()) {
        linked.add(target);
        token.attrSet('target', '_self');
      }
    }
  });
}

/** A diagram in the colours of the page. */
function drawn(text: string): string {
  const svg = renderMermaidSVG(text, { bg: 'var(--vp-c-bg)', fg: 'var(--vp-c-text-1)', transparent: true });
  // The font would come from another server.
  const own = svg.replace(/@import [^;]*;/, '').replace('<svg ', '<svg role="img" aria-label="Diagram" ');
  return `<div class="diagram" tabindex="0" v-html="decodeURIComponent('${encodeURIComponent(own).replaceAll("'", '%27')}')"></div>\n`;
}

interface Section {
  text: string;
  items: { text: string; link: string; about: string }[];
}

/** The sections of the index of the documentation. */
function sections(): Section[] {
  return read('docs/README.md')
    .split(/^## /m)
    .slice(1)
    .map((part) => ({
      text: part.split('\n', 1)[0]!,
      items: Array.from(part.matchAll(/\[([^\]]+)\]\(([^)]+\.md)\)(?:: (.*))?/g), ([, text, path, about = '']) => ({
        text: text!,
        link: `/${asPage(join('docs', path!))}`,
        about,
      })),
    }));
}

function sidebar() {
  return sections().map(({ text, items }) => ({
    text,
    items: items.map(({ text: title, link }) => ({ text: title, link })),
  }));
}

/** Each page is there as Markdown, too. */
function copyText(page: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, read(page));
}

/** The list of pages for agents (llmstxt.org). */
function listForAgents(): string {
  const parts = sections().map(({ text, items }) => {
    const lines = items.map(({ text: title, link, about }) => `- [${title}](${link})${about && `: ${about}`}`);
    return `## ${text}\n\n${lines.join('\n')}\n`;
  });
  return [`# svc-api\n\n> ${description}\n`, ...parts].join('\n');
}
