export default {
  en: {
    "secret.show": "Show or hide: {label}", "secret.copy": "Copy: {label}",
  },
  ko: {
    "secret.show": "보기 또는 숨기기: {label}", "secret.copy": "복사: {label}",
  },
};
