import Theme from 'vitepress/theme';
import './site.css';

export default Theme;
