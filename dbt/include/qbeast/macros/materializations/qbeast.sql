{# A model stored with a Qbeast index. #}
{% materialization qbeast, adapter='qbeast', supported_languages=['sql', 'python'] %}
  {{ return(qbeast_build_model(true)) }}
{% endmaterialization %}
